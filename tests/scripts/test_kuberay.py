"""The manifest of a Ray cluster on Kubernetes: its fields, and whether its parts fit each other and the command."""

import json
import re
import shlex

import pytest
from running import ROOT

from xclass.cli import arguments
from xclass.cli import command as cli
from xclass.cli.declared import resolved

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("ruamel.yaml")


@pytest.fixture(scope="module")
def check():
    schema = json.loads((ROOT / "demo" / "kuberay.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def manifest():
    return yaml.YAML(typ="safe").load((ROOT / "demo" / "kuberay.yaml").read_text())


def by_kind(manifest, kind):
    (found,) = [item for item in manifest["items"] if item["kind"] == kind]
    return found


def groups(manifest):
    cluster = by_kind(manifest, "RayJob")["spec"]["rayClusterSpec"]
    return cluster["headGroupSpec"], *cluster["workerGroupSpecs"]


def config_of_run(manifest):
    """The configuration of the command in the script, and the words of the command."""
    script = by_kind(manifest, "ConfigMap")["data"]["learn.sh"]
    words = shlex.split(script.partition("exec xclass ")[2].replace("\\\n", " ").replace('"$@"', "--resume_run"))
    option_groups, reductions = cli.option_groups()
    typed = arguments.read(option_groups, reductions, words)
    return resolved(typed, None)


def test_manifest_fits_the_schema(check, manifest):
    check.validate(manifest)


def test_command_is_understood_and_uses_all_processors_of_the_workers(manifest):
    config = config_of_run(manifest)
    _, *workers = groups(manifest)
    assert config.cluster.workers == sum(
        group["replicas"] * int(group["rayStartParams"]["num-cpus"]) for group in workers
    )
    assert config.cluster.ray == "auto" and config.cluster.resume_run
    assert config.passes.checkpoint, "without checkpoints a run cannot be continued"


def test_processors_of_pods_are_those_of_ray(manifest):
    for group in groups(manifest)[1:]:
        (container,) = group["template"]["spec"]["containers"]
        for amounts in container["resources"].values():
            assert amounts["cpu"] == group["rayStartParams"]["num-cpus"]


def test_files_of_the_command_are_on_volumes(manifest):
    head, *workers = groups(manifest)
    pod = head["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(mounted) == set(volumes)
    claim = volumes["models"]["persistentVolumeClaim"]["claimName"]
    assert claim == by_kind(manifest, "PersistentVolumeClaim")["metadata"]["name"]
    assert volumes["run"]["configMap"]["name"] == by_kind(manifest, "ConfigMap")["metadata"]["name"]
    assert config_of_run(manifest).run.final_regressor.startswith(mounted["models"] + "/")
    job = by_kind(manifest, "RayJob")["spec"]
    assert job["entrypoint"] == f"sh {mounted['run']}/learn.sh"
    images = {c["image"] for group in (head, *workers) for c in group["template"]["spec"]["containers"]}
    assert len(images) == 1, "all nodes need the same versions"


def test_state_that_the_script_looks_for_is_that_of_the_model(manifest):
    script = by_kind(manifest, "ConfigMap")["data"]["learn.sh"]
    (tested,) = re.findall(r"\[ -e (\S+) \]", script)
    from xclass.cluster import run_state

    assert tested == run_state.path_of(config_of_run(manifest))
