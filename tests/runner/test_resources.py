"""What jobs ask of a cluster: given where it can be, refused in words where not."""

import pytest

from penstock.errors import InvalidRequest, Unsupported
from penstock.jobs.spark.tasks import Engine
from penstock.model.functions import Needs
from penstock.runner.resources import grant, machine_memory
from penstock.settings.sections import Cluster

LOCAL = Cluster(master="local[8,4]")
PROD = Cluster(master="spark://prod:7077")
ENGINE = Engine(None, 8)


def test_nothing_asked_changes_nothing() -> None:
    assert grant(Needs(), ENGINE, LOCAL) is ENGINE


def test_cpus_bound_how_many_run_at_once() -> None:
    assert grant(Needs(num_cpus=3), ENGINE, LOCAL).slots == 2


def test_memory_bounds_how_many_run_at_once() -> None:
    third = machine_memory() // 3
    assert grant(Needs(memory=third), ENGINE, LOCAL).slots == 3


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="9 CPUs"):
        grant(Needs(num_cpus=9), ENGINE, LOCAL)
    with pytest.raises(InvalidRequest, match="GB"):
        grant(Needs(memory=machine_memory() * 2), ENGINE, LOCAL)
    with pytest.raises(Unsupported, match="2 GPUs"):
        grant(Needs(num_gpus=2), ENGINE, LOCAL)


def test_a_cluster_gets_a_profile_of_what_it_can_schedule() -> None:
    offering = Cluster(master="spark://prod:7077", conf={"spark.executor.resource.gpu.amount": "1"})
    profile = grant(Needs(num_cpus=2, num_gpus=1), ENGINE, offering).profile
    assert profile.taskResources["cpus"].amount == 2
    assert profile.taskResources["gpu"].amount == 1


def test_a_cluster_is_not_asked_for_what_it_does_not_offer() -> None:
    with pytest.raises(Unsupported, match="offers none"):
        grant(Needs(num_gpus=1), ENGINE, PROD)
    with pytest.raises(Unsupported, match="fixed size"):
        grant(Needs(memory=10**9), ENGINE, PROD)
