"""Orbax: a training loop in JAX with an asynchronous ``CheckpointManager`` that keeps one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

from tests.frameworks.trainings.gate import Run

WIDTH = 16
#: Never touched by training; it only makes a save take its time.
BALLAST = 8 * 1024 * 1024


def fresh() -> dict[str, Any]:
    """Return the state of a training that has not begun."""
    key, seed = jax.random.split(jax.random.key(7))
    return {
        "w": jax.random.normal(seed, (WIDTH, 1)),
        "pace": jnp.zeros((WIDTH, 1)),
        "ballast": jax.random.normal(jax.random.key(8), (BALLAST,)),
        "key": jax.random.key_data(key),
    }


@jax.jit
def stepped(state: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the state after one more step, and its loss."""
    key, seed = jax.random.split(jax.random.wrap_key_data(state["key"]))
    x = jax.random.normal(seed, (8, WIDTH))

    def loss_of(w: Any) -> Any:
        return jnp.mean((x @ w - x.sum(1, keepdims=True)) ** 2)

    loss, slope = jax.value_and_grad(loss_of)(state["w"])
    pace = 0.9 * state["pace"] + slope
    moved = {"w": state["w"] - 1e-2 * pace, "pace": pace, "key": jax.random.key_data(key)}
    return state | moved, loss


def train(run: Run) -> None:
    """Train; a resumed one takes the newest step of the directory."""
    options = ocp.CheckpointManagerOptions(max_to_keep=1)
    with ocp.CheckpointManager(run.root.absolute(), options=options) as manager:
        state, step = fresh(), 0
        if run.resume:
            step = manager.latest_step() or 0
            state = manager.restore(step, args=ocp.args.StandardRestore(state))
        while step < run.last_step:
            step += 1
            state, loss = stepped(state)
            run.note(step, float(loss))
            if run.saves_at(step):
                run.wait(step)
                manager.save(step, args=ocp.args.StandardSave(state))


if __name__ == "__main__":
    train(Run.started())
