"""The manifests of demo/ that serve models: their fields, and whether the command understands their options."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from running import ROOT

from xclass.cli import serve
from xclass.options import words

yaml = pytest.importorskip("ruamel.yaml")


def given(arguments):
    """Return the options of a command line of `xclass serve`, field -> value."""
    found, others = words.read(serve.declared(), arguments)
    assert not others
    return found


def test_the_unit_of_systemd_starts_what_learns_and_saves():
    text = (ROOT / "demo" / "xclass-serve.service").read_text()
    (line,) = re.findall(r"^ExecStart=\S+ serve (.*)$", text, re.MULTILINE)
    options = given(shlex.split(line))
    assert options["initial_regressor"] == options["final_regressor"] and options["checkpoint"] and options["http"]
    assert options["final_regressor"].startswith("/var/lib/xclass/") and "StateDirectory=xclass" in text


def test_systemd_understands_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (ROOT / "demo" / "xclass-serve.service").read_text().replace("/opt/xclass/bin/xclass", sys.executable)
    unit = tmp_path / "xclass-serve.service"
    for content, problems in ((text, ""), (text.replace("ProtectClock", "ProtectClocks"), "ProtectClocks")):
        unit.write_text(content)
        result = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
        assert (problems in result.stderr) and bool(problems) == bool(result.stderr)


def test_the_image_is_not_of_root_and_starts_with_compiled_kernels():
    text = (ROOT / "demo" / "serve.Dockerfile").read_text()
    parts = ["ENV NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES=", "RUN xclass warmup", "USER 999", "ENTRYPOINT"]
    assert [*map(text.index, parts)] == sorted(map(text.index, parts))
    (entry,), (command,) = (re.findall(rf"^{name} (.*)$", text, re.MULTILINE) for name in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["xclass", "serve"]
    assert given(json.loads(command)) == {"models": "/models", "http": "0.0.0.0:8000"}


def test_the_manifest_fits_the_schema_of_kubernetes():
    jsonschema = pytest.importorskip("jsonschema")
    schema = jsonschema.Draft202012Validator(json.loads((ROOT / "demo" / "serve.kubernetes.schema.json").read_text()))
    deployment, service = yaml.YAML(typ="safe").load_all((ROOT / "demo" / "serve.kubernetes.yaml").read_text())
    schema.validate(deployment)
    schema.validate(service)
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    del service["spec"]["ports"][0]["port"]
    assert not schema.is_valid(deployment) and not schema.is_valid(service)


def test_the_manifest_fits_the_image():
    deployment, service = yaml.YAML(typ="safe").load_all((ROOT / "demo" / "serve.kubernetes.yaml").read_text())
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    options = given(container["args"])
    assert options["allow_host"] == (service["metadata"]["name"],)  # which clients of the service ask for
    (port,) = container["ports"]
    assert options["http"].endswith(f":{port['containerPort']}")
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["template"]["metadata"]["labels"] == service["spec"]["selector"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert {probe: container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == {
        "livenessProbe": "/healthz", "readinessProbe": "/readyz",
    }  # fmt: skip
    assert container["startupProbe"]["httpGet"] == container["readinessProbe"]["httpGet"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and spec["securityContext"]["runAsNonRoot"]
    assert f"USER {spec['securityContext']['runAsUser']}" in (ROOT / "demo" / "serve.Dockerfile").read_text()
    (mount,) = container["volumeMounts"]
    assert mount["mountPath"] == options["models"] and mount["name"] == spec["volumes"][0]["name"]
