"""From a URL and the settings to the store: the one place that knows the options of every kind."""

from __future__ import annotations

from ckptsyncd.core.ports import Store
from ckptsyncd.residence import residency_of
from ckptsyncd.settings import Settings
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.open import open_store
from ckptsyncd.stores.s3.options import S3Options

#: So long a server may be silent: one that is busy is not gone (guessed).
SILENT_SECONDS = 60.0


def store_at(url: str, settings: Settings, *, silent_seconds: float = SILENT_SECONDS) -> Store:
    """Return the store of a URL with what the settings say about its kind; nothing is asked yet.

    What is empty is left to the SDK. ``silent_seconds`` is how long one answer is waited for.
    UsageError where the URL is wrong or the SDK is missing.
    """
    return open_store(
        url,
        s3=S3Options(
            endpoint_url=settings.s3_endpoint or None,
            region=settings.s3_region or None,
            profile=settings.s3_profile or None,
            path_style=settings.s3_path_style or None,
            sse=settings.s3_sse or None,
            kms_key_id=settings.s3_kms_key_id or None,
            storage_class=settings.s3_storage_class or None,
            trust_size=settings.trust_size,
            stay_in_region=residency_of(settings).has_rules,
            read_timeout_seconds=silent_seconds,
        ),
        gcs=GcsOptions(
            endpoint_url=settings.gcs_endpoint or None,
            anonymous=settings.gcs_anonymous,
            user_project=settings.gcs_user_project or None,
            kms_key_name=settings.gcs_kms_key_name or None,
            storage_class=settings.gcs_storage_class or None,
            read_timeout_seconds=silent_seconds,
        ),
        azure=AzureOptions(
            endpoint_url=settings.azure_endpoint or None,
            sas_token_file=settings.azure_sas_token_file or None,
            encryption_scope=settings.azure_encryption_scope or None,
            access_tier=settings.azure_access_tier or None,
            read_timeout_seconds=silent_seconds,
        ),
    )
