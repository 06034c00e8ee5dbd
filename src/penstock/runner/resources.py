"""Grant jobs the CPUs, GPUs and memory that they ask for, as far as the cluster can."""

import os
from dataclasses import replace
from typing import Any

from penstock.errors import InvalidRequest, Unsupported
from penstock.jobs.spark.doors import resource
from penstock.jobs.spark.tasks import Engine
from penstock.model.functions import Needs
from penstock.settings.sections import Cluster

GIGABYTE = 10**9


def grant(wanted: Needs, engine: Engine, cluster: Cluster) -> Engine:
    """The engine with the resources that a job asks for; raises when the cluster lacks them."""
    if wanted == Needs():
        return engine
    if cluster.master.startswith("local"):
        return _grant_locally(wanted, engine)
    return replace(engine, profile=_profile(wanted, cluster))


def _grant_locally(wanted: Needs, engine: Engine) -> Engine:
    """A local session schedules by slots alone, so run fewer tasks at once."""
    if wanted.num_gpus:
        raise Unsupported(
            f"the job asks for {wanted.num_gpus:g} GPUs, and a local cluster cannot schedule any",
            detail="send it to a cluster whose Spark workers offer GPUs",
        )
    slots = engine.slots
    if wanted.num_cpus:
        slots = int(engine.slots / wanted.num_cpus)
        if slots < 1:
            raise InvalidRequest(
                f"the job asks for {wanted.num_cpus:g} CPUs a task, and the cluster has "
                f"{engine.slots}",
                detail="ask for fewer, or send it to a larger cluster",
            )
    if wanted.memory:
        fitting = machine_memory() // wanted.memory
        if fitting < 1:
            raise InvalidRequest(
                f"the job asks for {wanted.memory / GIGABYTE:.1f} GB a task, and the machine has "
                f"{machine_memory() / GIGABYTE:.1f} GB",
                detail="ask for less, or send it to a larger cluster",
            )
        slots = min(slots, fitting)
    return replace(engine, slots=slots)


def _profile(wanted: Needs, cluster: Cluster) -> Any:
    builder = resource.ResourceProfileBuilder()
    tasks = resource.TaskResourceRequests()
    if wanted.num_cpus:
        tasks.cpus(max(1, round(wanted.num_cpus)))
    if wanted.num_gpus:
        if "spark.executor.resource.gpu.amount" not in cluster.conf:
            raise Unsupported(
                f"the job asks for {wanted.num_gpus:g} GPUs, and the cluster's conf offers none",
                detail="set spark.executor.resource.gpu.amount in the cluster's conf",
            )
        tasks.resource("gpu", wanted.num_gpus)
    builder.require(tasks)
    if wanted.memory:
        # Only executors that are started for the job can have a size of their own.
        if cluster.conf.get("spark.dynamicAllocation.enabled") != "true":
            raise Unsupported(
                "the job asks for memory, and the cluster's executors have a fixed size",
                detail="set spark.dynamicAllocation.enabled in the cluster's conf, or leave it out",
            )
        builder.require(
            resource.ExecutorResourceRequests().pysparkMemory(f"{wanted.memory // 2**20}m")
        )
    return builder.build


def machine_memory() -> int:
    """The bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
