"""How to reach the API server: from a kubeconfig, or from inside a pod."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import kube_config
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME

from poolwise import __version__
from poolwise.cluster import kubeconfig, service_account
from poolwise.errors import InvalidInput
from poolwise.settings import Settings

_NAMESPACE_FILE = service_account.FOLDER / "namespace"

USER_AGENT = f"poolwise/{__version__}"

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError)
"""What the client stumbles over in a file of another form: it checks none of it."""

Client = ApiClient
"""What requests go through."""
WatchSession = aiohttp.ClientSession
"""What kopf watches through."""


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextlib.contextmanager
def _overheard() -> Iterator[list[str]]:
    """What the client only logs while it reads a kubeconfig: that a program of its user, which
    should have logged in (``exec``), failed. It goes on without credentials then."""
    listener, logger = _Listener(), logging.getLogger(kube_config.__name__)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield listener.told
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagates


@dataclass
class Connection:
    """Address and credentials, shared by our own requests and by kopf's watches."""

    settings: Settings
    kubeconfig: str | None = None
    """None: ``KUBECONFIG`` or ``~/.kube/config``, unless this is a pod."""
    context: str | None = None
    configuration: Configuration = field(default_factory=Configuration)

    async def log_in(self) -> None:
        """Read the credentials (again): tokens expire.

        :raises InvalidInput: when the kubeconfig is missing, broken or lacks the context, or the
            program that it names for the login fails.
        """
        if self._is_in_pod:
            self._read_service_account()
        else:
            await self._read_kubeconfig()
        self.configuration.connection_pool_maxsize = self.settings.client_connections

    @property
    def _is_in_pod(self) -> bool:
        return self.kubeconfig is None and SERVICE_HOST_ENV_NAME in os.environ

    def _read_service_account(self) -> None:
        try:
            config.load_incluster_config(self.configuration)
        except config.ConfigException as error:
            raise InvalidInput("service account of this pod", str(error)) from error

    @property
    def _where(self) -> str:
        return self.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"

    async def _read_kubeconfig(self) -> None:
        where = self._where
        wrong = kubeconfig.problem(where, self.context)
        if wrong is not None:
            raise InvalidInput(f"kubeconfig {where}", wrong)
        try:
            with _overheard() as told:
                await config.load_kube_config(
                    where, self.context, self.configuration, persist_config=False
                )
            if told:
                raise config.ConfigException(f"cannot log in: {'; '.join(told)}")
            RESTClientObject(self.configuration)  # reads certificates and key
        except (config.ConfigException, OSError) as error:
            raise InvalidInput(f"kubeconfig {where}", " ".join(str(error).split())) from error
        except _MALFORMED as error:
            raise InvalidInput(f"kubeconfig {where}", f"is not a kubeconfig: {error}") from error

    @property
    def namespace(self) -> str:
        """Where the operator itself lives: its pod's namespace, else ``default``."""
        return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else "default"

    def account_references(self, namespace: str) -> list[dict[str, str]]:
        """What makes an object of that namespace go with the account that we run as; see there."""
        return service_account.owner_references(namespace) if self._is_in_pod else []

    def context_namespace(self) -> str:
        """Where kubectl would look: the namespace of the context in use, else ``default``."""
        if self._is_in_pod:
            return self.namespace
        return kubeconfig.namespace(self._where, self.context) or "default"

    def client(self) -> ApiClient:
        """Client for requests; its pool bounds how many are in flight."""
        client = ApiClient(self.configuration)
        client.user_agent = USER_AGENT
        return client

    def watch_client(self) -> ApiClient:
        """Client for watches of our own; unbounded, since each holds a connection."""
        configuration = copy.copy(self.configuration)  # shares the tokens
        configuration.connection_pool_maxsize = 0
        client = ApiClient(configuration)
        client.user_agent = USER_AGENT
        return client

    async def watch_session(self, middleware: aiohttp.ClientMiddlewareType) -> WatchSession:
        """Session for kopf; unbounded, since every watch holds a connection of its own."""
        token = (await self.configuration.auth_settings()).get("BearerToken")
        headers = {"User-Agent": USER_AGENT}
        if token:
            headers["Authorization"] = token["value"] or ""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=RESTClientObject(self.configuration).ssl_context
            ),
            headers=headers,
            proxy=self.configuration.proxy,
            trust_env=True,
            middlewares=[middleware],
        )
