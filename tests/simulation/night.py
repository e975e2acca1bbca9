"""One pretended night from dusk to dawn, and what must be true in the morning."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ckptsyncd.core.records import names
from ckptsyncd.core.view import snapshot
from tests.simulation.daemon import Daemon
from tests.simulation.inodes import Inode
from tests.simulation.oracle import Violation, check
from tests.simulation.plan import Plan, plan_of
from tests.simulation.trainer import HF_FILES, Trainer
from tests.simulation.world import Machine, World

#: By then everything is safe: a slow store and one hand have a lot to catch up with.
MOST_CALM_SECONDS = 4000.0
#: A settled world is watched for so long, to see that it is quiet: some sweeps.
QUIET_SECONDS = 200.0


def live_through(seed: int) -> World:
    """Live through the night of a seed; Violation says what went wrong, and what was before."""
    world = World(plan_of(seed))
    try:
        _night(world)
        _morning(world)
    except AssertionError as error:
        raise Violation(report(world, error)) from error
    return world


def report(world: World, error: BaseException) -> str:
    """Return what a person needs to find out why."""
    lines = [f"seed {world.plan.seed} at {world.now - world.begun:.3f} s: {error}"]
    lines.append(str(world.plan))
    for time, nonce, message, orders in list(world.log)[-25:]:
        lines.append(f"  {time - world.begun:9.3f} {nonce} {str(message)[:300]}")
        lines += [f"            -> {str(order)[:300]}" for order in orders]
    return "\n".join(lines)


# The night --------------------------------------------------------------------------------------


def _night(world: World) -> None:
    plan = world.plan
    machine = world.machine()
    for number, (style, interval, keep) in enumerate(plan.trainers):
        random = Random(f"trainer {plan.seed} {number}")
        _employ(
            world, machine, Trainer(machine.disk, random, f"run{number}", style, interval, keep)
        )
    world.at(world.begun + world.weather.choice((0.0, 20.0)), lambda: world.start(machine))
    for count, accident in _accidents(plan, world):
        for _ in range(count):
            world.at(_some_time(world), _on_some_machine(world, accident))
    for _ in range(plan.moves):
        world.at(_some_time(world), lambda: _move(world))
    for number in range(plan.strangers):
        _leave(world, machine.trainers[number % len(machine.trainers)], number)
    world.run(world.end)


def _accidents(plan: Plan, world: World) -> list[tuple[int, Callable[[Machine], None]]]:
    def outage(_: Machine) -> None:
        world.outage_until = world.now + world.weather.choice((5.0, 40.0))

    def forget(_: Machine) -> None:
        world.lose_uploads()

    def trainer_death(machine: Machine) -> None:
        trainer = world.weather.choice(machine.trainers)
        world.kill_trainer(trainer)
        world.after(world.weather.choice((1.0, 15.0)), lambda: _go_on(world, trainer))

    return [
        (plan.kills, world.kill),
        (plan.pauses, world.pause),
        (plan.overflows, world.overflow),
        (plan.notices, world.notice),
        (plan.stops, world.stop),
        (plan.outages, outage),
        (plan.gone, forget),
        (plan.trainer_deaths, trainer_death),
        (plan.emptied, world.empty),
        (plan.full, world.fill),
        (plan.lost_pins, world.lose_pin),
        (plan.meddlers, world.meddle),
        (plan.jumps, world.jump),
    ]


def _leave(world: World, trainer: Trainer, number: int) -> None:
    """Let somebody else have an object where a checkpoint's file will want to lie."""
    step = (number + 1) * trainer.stride
    name = world.weather.choice(
        ("last.ckpt", "weights.pt", f"step={step}.ckpt", f"checkpoint-{step}/optimizer.pt")
    )
    key = f"{trainer.run}/{name}"
    if key not in world.oracle.objects:
        world.calm_store.put_small(key, f"not ours {number}".encode(), None)
    world.oracle.look()


def _some_time(world: World) -> float:
    return world.begun + world.weather.uniform(1.0, world.plan.seconds)


def _on_some_machine(world: World, accident: Callable[[Machine], None]) -> Callable[[], None]:
    return lambda: accident(world.weather.choice(world.machines))


def _employ(world: World, machine: Machine, trainer: Trainer) -> None:
    machine.trainers.append(trainer)
    world.drive(trainer, trainer.live())


def _go_on(world: World, trainer: Trainer) -> None:
    if trainer.process is None and not trainer.is_retiring:
        trainer.resume()
        world.drive(trainer, trainer.live())


def _move(world: World) -> None:
    """Restore everything on a second machine, while the first one lives on for a while."""
    old, new = world.machines[-1], world.machine()
    for trainer in old.trainers:
        random = Random(f"trainer {world.plan.seed} {trainer.run} {new.name}")
        heir = Trainer(new.disk, random, trainer.run, trainer.style, trainer.interval, trainer.keep)
        new.disk.mkdir(trainer.run)
        _restore(world, new, heir)
        _employ(world, new, heir)
        if world.weather.random() < 0.5:
            world.kill_trainer(trainer)
    world.after(world.weather.choice((0.1, 5.0)), lambda: world.start(new))
    world.after(world.weather.choice((5.0, 60.0, 1000.0)), lambda: _bury(world, old))


def _restore(world: World, machine: Machine, trainer: Trainer) -> None:
    manifest = world.oracle.newest(trainer.run)
    if manifest is None:
        return
    machine.lineages[trainer.run] = manifest.lineage
    name = manifest.checkpoint
    contents = world.oracle.contents(manifest)
    if name not in contents:
        machine.disk.mkdir(name)
    for stored in manifest.files:
        if stored.kind == "file":
            machine.disk.place(stored.path, contents[stored.path], stored.mtime_ns)
    trainer.step = manifest.after_step if manifest.step is None else manifest.step
    trainer.step = max(trainer.step, 0)
    trainer.finished[name] = trainer.step
    trainer.newest = name


def _bury(world: World, machine: Machine) -> None:
    """End a machine for good."""
    machine.is_buried = True
    for trainer in machine.trainers:
        trainer.is_retiring = True
        world.kill_trainer(trainer)
    if machine.daemon is not None and machine.daemon.is_alive:
        machine.daemon.die()
    if machine in world.machines:
        world.machines.remove(machine)
    world.excuse()


# The morning ------------------------------------------------------------------------------------


def _morning(world: World) -> None:
    """Let the trainers finish and the weather clear up, and judge what has become of it all."""
    for machine in world.machines[:-1]:
        _bury(world, machine)
    machine = world.machines[-1]
    for trainer in machine.trainers:
        trainer.is_retiring = True
    world.is_calm = True
    world.run(world.end + 30.0)
    world.restart(machine)
    daemon = _wait_for_calm(world, machine)
    _judge_rest(world, machine, daemon)
    for trainer in machine.trainers:
        _judge_newest(machine, trainer, daemon, world)
    world.oracle.all_restorable()
    _judge_quiet(world, machine, daemon)


def _wait_for_calm(world: World, machine: Machine) -> Daemon:
    limit = world.now + MOST_CALM_SECONDS
    while world.now < limit:
        # Twice the sweep: whatever event was lost, everything has been looked at again.
        world.run(world.now + 130.0)
        daemon = machine.daemon
        if daemon is None or not daemon.is_alive:
            world.restart(machine)
        elif _is_calm(daemon):
            return daemon
    daemon = machine.daemon
    opened = [] if daemon is None else list(daemon.brain.editions.open.values())
    msg = f"not calm after {MOST_CALM_SECONDS} s: {daemon and daemon.is_alive} {opened}"
    raise Violation(msg)


def _is_calm(daemon: Daemon) -> bool:
    brain = daemon.brain
    busy = (
        brain.editions.open,
        brain.editions.unpins,
        brain.outstanding.out,
        brain.ending.is_hasty,
        brain.ending.binding(),
        brain.beside.companions,
        any(view.until is not None for view in brain.eyes.views()),
    )
    return brain.wishes.is_ready and brain.runs.is_settled() and not any(busy)


def _judge_newest(machine: Machine, trainer: Trainer, daemon: Daemon, world: World) -> None:
    """Judge that the newest finished checkpoint is safe with the content that is on the disk."""
    name = trainer.newest
    disk = machine.disk
    if name not in trainer.finished or name not in disk.names or disk.history.is_busy(name):
        return
    brain = daemon.brain
    if brain.runs.fenced:
        return
    row = brain.editions.safe.get(name)
    views = [view for view in brain.eyes.views() if view.checkpoint == name]
    plan = world.plan
    is_hidden = plan.loss or plan.meddlers or plan.is_polled or plan.jumps
    if is_hidden and any("ckptsyncd commit" in view.reason for view in views):
        # Nobody told that the marker came last, or something really came later: a person is asked.
        return
    check(row is not None, f"{name} is finished and not safe: {views}")
    assert row is not None
    there = {
        path: node.data
        for path, node in disk.names.items()
        if isinstance(node, Inode) and (path == name or path.startswith(name + "/"))
    }
    text = f"{name} is called safe, what is safe is older than what is on the disk: {views}"
    check(world.oracle.contents(row.manifest) == there, text)
    latest = world.oracle.latest.get(trainer.run)
    check(latest is not None, f"{trainer.run} has no latest")
    assert latest is not None
    check(latest.rank >= row.manifest.rank(), f"latest is behind {name}: {latest}")
    points = snapshot(brain, world.clock.now()).recovery_points
    check(any(point.series == trainer.run for point in points), f"no recovery point of {name}")


def _judge_rest(world: World, machine: Machine, daemon: Daemon) -> None:
    """Judge that nothing is left over: pins, ledger rows, begun uploads."""
    check(not machine.disk.pins, f"pins are left: {machine.disk.held()}")
    # What waits for a person's word on disk keeps what a former daemon had begun for it.
    waiting = {view.checkpoint for view in daemon.brain.eyes.views()}
    recalled = daemon.brain.recalled.editions.items()
    kept = {save_id for save_id, row in recalled if row.settled.checkpoint in waiting}
    rows = [row for row in machine.ledger.on_its_way() if row[1].split("/")[0] not in kept]
    check(not rows, f"rows are left in the ledger: {rows[:5]}")
    on_disk = set(machine.disk.names)
    known = {names.quoted(row) for row in daemon.brain.editions.safe}
    safe = [key for table, key in machine.ledger.rows if table == "safe"]
    check(set(safe) <= known, f"the ledger calls more safe ({safe}) than the mind ({known})")
    check(set(daemon.brain.editions.safe) <= on_disk, "what is not on the disk is called safe")
    check(not daemon.brain.editions.leftovers.garbage, "begun uploads wait to be dropped")
    if world.plan.limits.can_abandon:
        wanted = {begun.token for _, row in recalled for begun in row.uploads.values()}
        excused = world.excused | wanted
        left = [b for b in world.calm_store.uploads("") if b.token not in excused]
        check(not left, f"begun uploads are left: {left}")
    if len(world.oracle.disks) == 1 and not world.has_lost_rows:
        check(not daemon.brain.runs.fenced, f"fenced by itself: {daemon.brain.runs.fenced}")


def _judge_quiet(world: World, machine: Machine, daemon: Daemon) -> None:
    """Judge that a settled world stays quiet: sweeps, and the second thought about what is safe."""
    turns, orders = daemon.turns, daemon.store_orders
    rows, written = dict(machine.ledger.rows), world.oracle.writes
    world.run(world.now + QUIET_SECONDS)
    check(daemon.is_alive, "the daemon stopped by itself")
    # Twice in an interval: a list of what is safe, and the record of the last verification.
    rounds = 1 + QUIET_SECONDS // world.plan.policy.recheck_seconds
    called = daemon.store_orders - orders
    check(called <= 2 * rounds, f"a calm daemon keeps calling the store ({called} times)")
    check(world.oracle.writes == written, "a calm daemon keeps writing to the store")
    check(machine.ledger.rows == rows, "a calm daemon keeps writing to its ledger")
    policy = world.plan.policy
    rests = policy.poll_seconds if world.plan.is_polled else policy.sweep_seconds / 10
    most = QUIET_SECONDS / rests * 3
    check(daemon.turns - turns <= most, f"a calm daemon has {daemon.turns - turns} turns")
    state = daemon.brain.ending.state
    fenced = daemon.brain.runs.fenced
    check(state == ("fenced" if fenced else "running"), f"a calm daemon is {state}")


__all__ = ["HF_FILES", "live_through", "report"]
