"""A client whose methods wait."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flopwatch import signatures
from flopwatch.capture import Result

from .asked import AnyPath, BaseClient, ProfileOptions, Target
from .remote import RemoteCapture, RemoteFile
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Client(BaseClient):
    """Sessions of a cluster, with the rights of the kubeconfig's user, as ``kubectl flopwatch`` has them. Nothing is asked before the first method is called.

    :param namespace: namespace of pods and sessions; that of the kubeconfig's context unless it is given.
    :param context: context of the kubeconfig; the current one unless it is given.
    :param kubeconfig: its file; ``$KUBECONFIG``, else ``~/.kube/config``, and within a pod its own account unless it is given.
    :param flopwatch_namespace: namespace that Flopwatch is installed in; ``$FLOPWATCH_NAMESPACE``, else ``flopwatch-system``.
    :param gateway: address of the gateway as ``https://HOST``; ``$FLOPWATCH_GATEWAY``, else a port-forward to one of its pods.
    :param gateway_ca: PEM file with the authority of its certificate.
    :param token: token to show to the gateway; ``$FLOPWATCH_TOKEN``, else the kubeconfig's, of a program of credentials too.

    Every method raises :class:`flopwatch.ClientError` where cluster or gateway do not do it, :class:`flopwatch.ForbiddenError` where the caller may not, and
    :class:`flopwatch.RequestError` where what is asked for cannot be. Ctrl-C ends the waiting; a session that was made goes on.
    """

    def run(self, target: Target, *, wait: bool = False, timeout: float | None = None, **options: Unpack[ProfileOptions]) -> Session:
        """Makes a session.

        :param target: the name of a pod, as ``"trainer"`` or ``"pod/trainer"``; or a manifest as a mapping, or the path of one in YAML as a
            :class:`pathlib.Path`: of a pod that is made, run once and deleted, or of a whole ``ProfilingSession``, which takes no options beside.
        :param wait: waits for its end, as :meth:`wait` does.
        :param timeout: the longest wait in seconds.
        :param options: what ``kubectl flopwatch profile`` takes: ``duration``, ``profiler``, ``container``, ``trace``, ``require``, ``outputs``, ``replica``,
            ``start``, ``cuda_graph_trace``, ``capture_range``, ``gpu_metrics``, ``ncu_set``, ``kernel``, ``top_kernels_of``, ``launches``, ``name``.
        """
        made = self._requests.run(target, options).waited()
        return self.wait(made.name, timeout) if wait else made

    def sessions(self, all_namespaces: bool = False, selector: str | None = None) -> list[Session]:
        """Sessions of the namespace, or of all, the newest first; with labels such as ``"app=train"``."""
        return self._requests.sessions(all_namespaces=all_namespaces, selector=selector).waited()

    def session(self, name: str) -> Session:
        """A session as it is now.

        :raises NotFoundError: where there is none of that name.
        """
        return self._requests.session(name).waited()

    def wait(self, name: str, timeout: float | None = None) -> Session:
        """Waits for the end of a session.

        :raises SessionFailedError: where it ended without success.
        :raises TimeoutError: where it had not ended in ``timeout`` seconds; it goes on.
        """
        return self._requests.wait(name, timeout).waited()

    def stop(self, name: str, discard: bool = False) -> None:
        """Ends a session now. What it recorded is published, or thrown away."""
        self._requests.stop(name, discard=discard).waited()

    def fetch(
        self,
        name: str,
        directory: AnyPath | None = None,
        *,
        artifacts: Sequence[str] = (),
        capture: str | None = None,
        overwrite: bool = False,
    ) -> list[Path]:
        """Fetches what a session published, and gives where it is. A transfer that broke off goes on from there, and files appear under their names when their
        checksums are those that the captures tell.

        :param directory: the folder; one of the session's name unless it is given.
        :param artifacts: names such as ``timeline.h5``; all but raw ones unless some are given.
        :param capture: the capture; all of the session's unless it is given.
        :raises FileExistsError: where another file is there already.
        """
        return self._requests.fetch(name, directory, capture=capture, artifacts=artifacts, overwrite=overwrite).waited()

    @signatures.of_session
    def analyze(self, name: str, analysis: str, /, capture: str | None = None, *, others: Sequence[str] = (), **parameters: Any) -> Result:
        """Has the gateway run an analysis of the :func:`flopwatch.catalogue` on a capture; which one need not be said where the session has one.

        :param others: further captures, as ``SESSION`` or ``SESSION/CAPTURE``, of analyses that compare.
        :raises AnalysisError: where it has no result.
        """
        return self._requests.analyze(name, analysis, capture=capture, others=others, parameters=parameters).waited()

    def render(
        self,
        name: str,
        analysis: str,
        /,
        format: str = "text",
        capture: str | None = None,
        *,
        others: Sequence[str] = (),
        **parameters: Any,
    ) -> str:
        """The result of an analysis as ``text``, ``csv``, ``html``, ``page`` or ``json``."""
        return self._requests.render(name, analysis, format, capture=capture, others=others, parameters=parameters).waited()

    def open(self, name: str, capture: str | None = None) -> RemoteCapture:
        """Opens a capture where it is: of its timeline file only what is asked for is moved."""
        return RemoteCapture(self._requests.open(name, capture=capture).waited())

    def file(self, name: str, artifact: str, capture: str | None = None) -> RemoteFile:
        """A file of a capture, read by parts where somebody looks. It is one that was published, such as ``timeline.h5``, or one that the gateway makes of the
        timeline, such as ``timeline.parquet``.
        """
        return RemoteFile(self._requests.file(name, artifact, capture=capture).waited(), artifact)
