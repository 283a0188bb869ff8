"""A Ray cluster of two nodes beside its head, on this machine: python -m torture.nodes.

Prints its address; at each line that it reads, a node is killed and another one takes its place.
"""

import sys
from typing import Any

from ray.cluster_utils import Cluster

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 2**27, "include_dashboard": False}


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    print(cluster.address, flush=True)
    try:
        for _ in sys.stdin:
            cluster.remove_node(nodes.pop(0), allow_graceful=False)
            nodes.append(cluster.add_node(**NODE))
            print("killed", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
