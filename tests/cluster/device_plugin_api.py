"""The kubelet's device plugin API, v1beta1, as messages and names of its calls.

The messages are those of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto, with the numbers of their fields: what
a device plugin for tests has no use for is left out, which the wire format allows.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

VERSION = "v1beta1"
FOLDER = Path("/var/lib/kubelet/device-plugins")
"""Folder of the sockets of device plugins, whatever the kubelet's own folder is (DevicePluginPath)."""

KUBELET_SOCKET = FOLDER / "kubelet.sock"

_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "Empty": {},
    "DevicePluginOptions": {},
    "RegisterRequest": {"version": (1, "string"), "endpoint": (2, "string"), "resource_name": (3, "string")},
    "Device": {"ID": (1, "string"), "health": (2, "string")},
    "ListAndWatchResponse": {"devices": (1, "Device*")},
    "ContainerAllocateRequest": {"devices_ids": (1, "string*")},
    "AllocateRequest": {"container_requests": (1, "ContainerAllocateRequest*")},
    "Mount": {"container_path": (1, "string"), "host_path": (2, "string"), "read_only": (3, "bool")},
    "DeviceSpec": {"container_path": (1, "string"), "host_path": (2, "string"), "permissions": (3, "string")},
    "Variable": {"key": (1, "string"), "value": (2, "string")},  # an entry of `map<string, string>` on the wire
    "ContainerAllocateResponse": {
        "envs": (1, "Variable*"),
        "mounts": (2, "Mount*"),
        "devices": (3, "DeviceSpec*"),
        "annotations": (4, "Variable*"),
    },
    "AllocateResponse": {"container_responses": (1, "ContainerAllocateResponse*")},
}
"""Fields of each message: number and type, with `*` where there are several."""

_KINDS = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="deviceplugin.proto", package=VERSION, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, written) in fields.items():
            several, kind = written.endswith("*"), written.removesuffix("*")
            added = message.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if several else added.LABEL_OPTIONAL
            if kind in _KINDS:
                added.type = _KINDS[kind]
            else:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{VERSION}.{kind}"
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def message(name: str) -> Any:
    """Return the class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{VERSION}.{name}"))
