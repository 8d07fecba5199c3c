"""Findings of an export with nsys-ai, which keeps tables beside the file: the file's first look, or a later one."""

import contextlib
import io
import os
import shutil
import sys
import tempfile

from nsys_ai.diagnose_command import run_diagnose

import measure

with tempfile.TemporaryDirectory() as folder:
    copy = shutil.copy(sys.argv[1], folder)
    os.environ["NSYS_AI_ARTIFACT_ROOT"] = os.path.join(folder, "artifacts")

    def job():
        text = io.StringIO()
        with contextlib.redirect_stdout(sys.stderr):
            run_diagnose(profile_path=copy, stdout=text)
        return {"text_bytes": len(text.getvalue())}

    if "again" in sys.argv[2:]:
        job()
    measure.run(job)
