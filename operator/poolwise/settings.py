"""What an administrator may tune, with the reason for each default. Immutable after start-up.

The environment sets them (:mod:`poolwise.environment`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

_Label = Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
_Currency = Annotated[str, Field(pattern="^[A-Z]{3}$")]
_Share = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?=(0|1|0?\.[0-9]+|1\.0+)$")
]


class Settings(BaseModel):
    """One flat table; sections are comments."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # Placement
    currency: _Currency = Field(
        "USD",
        description="Currency of all costs, ISO 4217. A price in another one is never converted: "
        "it gives no cost. The shipped prices are in USD.",
    )
    default_input_tokens: tuple[float, float] = Field(
        (1015, 4085),
        description="Median and 95th percentile of prompt lengths where a service gives none: "
        "those of 14,176 conversations of Azure's public trace of 2023.",
    )
    default_output_tokens: tuple[float, float] = Field(
        (115, 448), description="The same for answers, of the same trace."
    )
    marginal_efficiency: float = Field(
        0.5,
        gt=0,
        le=1,
        description="A run that may grow takes more accelerators while each further one adds at "
        "least this share of the speed that each has at the smallest count.",
    )
    spot_interruptions_per_node_hour: float = Field(
        0.23,
        ge=0,
        description="How often a Spot node is taken away: 802 times in 3,497 node-hours of V100s, "
        "measured by the authors of Can't Be Late (NSDI 2024, skypilot-org/spot-traces) in seven "
        "zones of AWS in 2023, from 0.06 to 0.74 by zone. Yours may differ much; 0 means never.",
    )
    restart_seconds: float = Field(
        600,
        ge=0,
        description="Time of a run from the loss of a node to its next step, without the start-up "
        "of the new node: images, rendezvous, reading the checkpoint. The 466 interruptions of "
        "Llama 3's 54 days left more than 90 % of the time effective: at most 17 min each, lost "
        "work included.",
    )

    # The queue: whose turn it is, and who gives way
    aging_seconds: float = Field(
        7 * 86400.0,
        gt=0,
        description="A workload that has waited this long counts double among those of its "
        "priority, and doubles again each time as much more has passed.",
    )
    namespace_shares: tuple[_Share, ...] = Field(
        (),
        description="Largest share of all accelerators that a namespace may hold, as "
        "namespace=share with a share from 0 to 1, separated by commas; a namespace that is not "
        "listed may hold all.",
    )
    may_move: bool = Field(
        False,
        description="Move runs that keep checkpoints to another pool where that gains more than "
        "the restart loses.",
    )
    may_preempt: bool = Field(
        False,
        description="Stop runs that keep checkpoints for work of a higher PriorityClass that "
        "would otherwise wait longer than the stop costs.",
    )
    move_margin: float = Field(
        1.5,
        ge=1,
        description="A move or a stop must gain more than this many times what it loses.",
    )
    settle_seconds: float = Field(
        3600,
        ge=0,
        description="A run is not moved or stopped for others until it has run this long.",
    )
    optimise_seconds: float = Field(
        60,
        gt=0,
        description="While something waits, shadow prices are worked out and the optimiser runs "
        "this often; passes in between follow the queue.",
    )
    optimise_limit_seconds: float = Field(
        0.5, gt=0, le=60, description="Longest that the optimiser may take in one pass."
    )

    # Nodes that are not there yet
    node_startup_seconds: float = Field(
        300,
        gt=0,
        description="Time of a new node from request to Ready where its AcceleratorPool gives none "
        "(nodeStartup): machine, drivers and device plugin of a cloud's GPU node.",
    )
    start_timeout_seconds: float = Field(
        1800,
        gt=0,
        description="A service whose pods find no node within this time is placed elsewhere; jobs "
        "have startTimeout, with the same default.",
    )
    start_retry_seconds: float = Field(
        600,
        gt=0,
        description="A pool where the pods of a workload did not start in time is avoided for this "
        "long; twice as long after each further attempt.",
    )
    start_retry_limit_seconds: float = Field(
        14400, gt=0, description="Longest that such a pool is avoided."
    )

    # Hardware that neither labels, tables nor an AcceleratorPool describe
    storage_read_bytes_per_second: float = Field(
        2e9, gt=0, description="Reading samples, one node: one NVMe drive or one 25 GbE client."
    )
    storage_shared_read_bytes_per_second: float = Field(
        20e9,
        gt=0,
        description="Reading samples, all nodes of a pool: a small parallel file system.",
    )
    model_load_bytes_per_second: float = Field(
        1e9, gt=0, description="Weights from their store into the devices, one node: one reader."
    )

    # Engines: their images where a service names none, and how they start and stop
    vllm_image: str = Field("vllm/vllm-openai:v0.29.0", description="vLLM for NVIDIA.")
    vllm_rocm_image: str = Field("vllm/vllm-openai-rocm:v0.29.0", description="vLLM for AMD.")
    vllm_cpu_image: str = Field("vllm/vllm-openai-cpu:v0.29.0", description="vLLM for CPU.")
    sglang_image: str = Field("lmsysorg/sglang:v0.5.18", description="SGLang for NVIDIA.")
    tgi_image: str = Field(
        "ghcr.io/huggingface/text-generation-inference:3.3.7", description="TGI for NVIDIA."
    )
    triton_image: str = Field(
        "nvcr.io/nvidia/tritonserver:26.08-py3", description="Triton for NVIDIA and CPU."
    )
    engine_start_seconds: float = Field(
        600,
        gt=0,
        description="Time that an engine may take to start, without loading weights (imports, "
        "compilation, graph capture); KServe's templates allow as much for everything.",
    )
    load_margin: float = Field(
        3, ge=1, description="Loading weights may take this many times its predicted time."
    )
    endpoint_removal_seconds: int = Field(
        15,
        ge=1,
        le=300,
        description="A replica that stops goes on answering for this long, until no proxy sends "
        "requests to it.",
    )
    drain_limit_seconds: int = Field(
        600,
        ge=1,
        description="Longest that a replica that stops may wait for its requests in flight.",
    )

    # Scaling of services
    scaling_interval_seconds: float = Field(
        10,
        ge=0,
        le=60,
        description="How often the metrics of replicas are read and the number of replicas is "
        "decided; 0 turns scaling off: services keep the replicas that they were placed with.",
    )
    gateway_seconds: float = Field(
        1,
        ge=0.2,
        le=60,
        description="While a service has no replica, the queue of the gateway in front of it is "
        "read this often; through a Prometheus as often as the metrics of replicas.",
    )
    scrape_timeout_seconds: float = Field(
        3, gt=0, le=30, description="Longest that a replica may take to answer with its metrics."
    )
    scrape_limit_bytes: int = Field(
        2**20,
        ge=2**14,
        le=2**26,
        description="Largest answer that is read; an engine's metrics take 20 to 200 kB.",
    )
    scrape_connections: int = Field(
        128,
        ge=1,
        le=1000,
        description="Replicas that are scraped at the same time, or whose answers wait to be read; "
        "times `scrape_limit_bytes` it bounds the memory of these answers.",
    )
    prometheus_url: str = Field(
        "",
        description="A Prometheus that has the metrics of replicas, as https://prometheus.example; "
        "it is queried instead of scraping the replicas. Set scaling_interval_seconds to twice "
        "its scrape interval.",
    )
    prometheus_ca_file: str = Field(
        "",
        description="File with the certificate authorities to trust for it; the system's when "
        "empty.",
    )
    prometheus_token_file: str = Field(
        "", description="File with the bearer token to send to it; none when empty."
    )
    prometheus_max_age_seconds: float = Field(
        60, gt=0, description="Samples that it scraped longer ago than this are ignored."
    )

    # Measuring of runs
    training_interval_seconds: float = Field(
        15,
        ge=0,
        le=60,
        description="How often rank 0 of every run with a port named metrics is scraped; measuring "
        "its step takes four scrapes, its warm-up eight. 0 turns it off: progress and step times "
        "are predictions.",
    )

    # Scope
    namespaces: tuple[_Label, ...] = Field(
        (),
        description="Namespaces to serve, separated by commas; empty means all, with ClusterRoles.",
    )

    # Leader election: client-go's defaults, by which a standby acts within 18 s of a crash
    leader_election: bool = Field(
        True,
        description="Wait for the Lease before writing; turn off only where there is surely one "
        "replica.",
    )
    lease_name: _Label = Field("poolwise", description="Name of the Lease.")
    lease_namespace: str = Field(
        "", description="Namespace of the Lease; empty means the operator's own."
    )
    lease_seconds: float = Field(
        15, ge=1, description="Time without a renewal after which a standby takes over."
    )
    lease_renew_seconds: float = Field(
        10, gt=0, description="Time after which a leader that could not renew exits."
    )
    lease_retry_seconds: float = Field(
        2, gt=0, description="Time between renewals, and between attempts of a standby."
    )

    # Client of the API server
    client_connections: int = Field(
        20,
        ge=1,
        le=1000,
        description="Requests in flight; 20 keep one API server busy and leave others their share.",
    )
    request_timeout_seconds: float = Field(
        30, gt=0, description="Limit of one request; watches have none."
    )
    list_page_size: int = Field(
        500, ge=1, description="Objects of one LIST page: bounds memory on both sides."
    )

    # Reconciling
    queue_workers: int = Field(
        16, ge=1, le=256, description="Workloads that are written at the same time."
    )
    debounce_seconds: float = Field(
        0.03, ge=0, le=5, description="Wait for more events before a planning pass: one per burst."
    )
    retry_seconds: float = Field(
        0.5, gt=0, description="First delay after a failed write; doubles with each failure."
    )
    retry_limit_seconds: float = Field(60, gt=0, description="Longest delay between two attempts.")
    status_seconds: float = Field(
        1,
        ge=0,
        description="Least time between two status writes of one workload without a new decision: "
        "pods that start one by one are reported together.",
    )
    accrual_seconds: float = Field(
        3600,
        ge=0,
        description="What a workload has cost so far is written to its status this often while "
        "nothing else changes; metrics and `poolwise explain` show it to the second anyway. 0: "
        "only when its rate changes, and at the end.",
    )
    resync_seconds: float = Field(
        600, gt=0, description="Every workload is looked at again at least this often."
    )
    relist_seconds: float = Field(
        300,
        gt=0,
        description="Names and uids are listed again this often, to drop what a watch lost.",
    )
    pulse_seconds: float = Field(
        3,
        gt=0,
        description="One object of one kind is read this often, kind after kind: a right that is "
        "taken away is noticed after one round of about a dozen kinds.",
    )
    discovery_seconds: float = Field(
        10,
        gt=0,
        description="The API server is asked this often whether Kueue, JobSet, LeaderWorkerSet, "
        "Kubeflow Trainer and InferencePools are served: one that comes or goes is noticed without "
        "a restart.",
    )

    # Health, metrics, logs
    metrics_listen: str = Field(
        "0.0.0.0:8080", description="Address and port of /metrics; empty turns it off."
    )
    workload_metrics: bool = Field(
        True,
        description="Metrics with the names of workloads as labels; turn off where there are tens "
        "of thousands: each has 10 to 20 series.",
    )
    liveness_listen: str = Field(
        "0.0.0.0:8081",
        description="Address and port of /healthz and /readyz; empty turns them off.",
    )
    watch_stale_seconds: float = Field(
        180,
        gt=0,
        description="A watch without event or bookmark for this long is dead: bookmarks come every "
        "60 s, and kopf reopens a silent stream after 70 s.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe message that is logged."
    )

    @field_validator(
        "namespaces",
        "namespace_shares",
        "default_input_tokens",
        "default_output_tokens",
        mode="before",
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("default_input_tokens", "default_output_tokens")
    @classmethod
    def _are_lengths(cls, value: tuple[float, float]) -> tuple[float, float]:
        median, most = value
        if not 1.0 <= median <= most:
            raise ValueError("must be a median of at least 1 and a 95th percentile no smaller")
        return value

    @field_validator("namespace_shares")
    @classmethod
    def _are_of_different_namespaces(cls, value: tuple[_Share, ...]) -> tuple[_Share, ...]:
        if len({each.partition("=")[0] for each in value}) < len(value):
            raise ValueError("must name each namespace once")
        return value

    @model_validator(mode="after")
    def _is_fenced(self) -> Settings:
        """A leader must have stopped before another may start."""
        times = (self.lease_retry_seconds, self.lease_renew_seconds, self.lease_seconds)
        if not times[0] < times[1] < times[2]:
            raise ValueError(
                "lease_retry_seconds < lease_renew_seconds < lease_seconds must hold, they are "
                + ", ".join(f"{seconds:g}" for seconds in times)
            )
        return self

    @model_validator(mode="after")
    def _is_guarded(self) -> Settings:
        """A token that travels in the clear is everybody's."""
        url = self.prometheus_url
        if url and not url.startswith(("http://", "https://")):
            raise ValueError(f"prometheus_url must begin with http:// or https://, is {url}")
        if self.prometheus_token_file and not url.startswith("https://"):
            raise ValueError("prometheus_token_file needs a prometheus_url of https://")
        return self

    @field_validator("metrics_listen", "liveness_listen")
    @classmethod
    def _is_endpoint(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if value and not (host and port.isdigit() and int(port) < 65536):
            raise ValueError("must be ADDRESS:PORT with a port of 0 to 65535, or empty")
        return value
