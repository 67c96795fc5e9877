# SPDX-License-Identifier: Apache-2.0
"""Calls every getter that nvidia-ml-py wraps and prints one line each: name, arguments, what came back. Two
runs can be compared line by line. The arguments come from the getter's signature; a getter whose arguments
this does not know is named on standard error."""
import ctypes
import inspect
import re
import sys

import pynvml as N

N.nvmlInit()
device = N.nvmlDeviceGetHandleByIndex(0)


try:
    N.nvmlDeviceGetPciInfo(device)
    has_pci = True
except N.NVMLError:
    has_pci = False


def known(parameter):
    """Arguments to try for a parameter, or None."""
    p = parameter.lower()
    values = {
        "handle": [device], "device": [device], "device1": [device], "device2": [device], "index": [0, 99],
        "link": [0], "fan": [0],
        "pid": [1], "cause": [0, 1], "errortype": [0, 1], "countertype": [0, 1], "locationtype": [0, 1, 2],
        "type": [0, 1, 2, 3],
        "clocktype": [0, 1, 2], "clockid": [0], "sensor": [0], "sensortype": [0], "sensorindex": [15],
        "thresholdtype": [0, 1, 2, 3],
        "threshold": [0, 1], "counter": [0, 1], "infoversion": [1], "inforomobject": [0, 1, 2],
        "infotype": [0, 1, 2], "object": [0, 1],
        "apitype": [0, 1], "memoryclockmhz": [3201, 2619], "pstate": [0], "lastseentimestamp": [0],
        "timestamp": [0],
        "sampling_type": [0, 1], "samplingtype": [1], "fieldids": [[1, 82, 91, 186]], "capability": [0, 1],
        "perfpolicytype": [0, 1],
        "nodesetsize": [4], "cpusetsize": [4], "scope": [0, 1], "level": [10, 20], "p2pindex": [0, 1, 2],
        "profile": [0, 9],
        "profileid": [0, 9], "profile_id": [0], "engprofile": [0], "id": [0], "vgputypeid": [0],
        "sourcefilter": [0, 1], "gpuinstanceid": [0], "migdevice": [device],
        "version": [1, getattr(N, "nvmlProcessDetailList_v1", 2)], "encoderquerytype": [0, 1],
        "c_nonce": [bytes(32)], "placementsref": [(N.c_nvmlGpuInstancePlacement_t * 16)()],
        "gpuinstancesref": [(N.c_nvmlGpuInstance_t * 16)()],
        "countref": [ctypes.byref(ctypes.c_uint(16))], "vgpumetadata": [N.c_nvmlVgpuMetadata_t()],
        "pgpumetadata": [N.c_nvmlVgpuPgpuMetadata_t()],
        "pcibusid": [N.nvmlDeviceGetPciInfo(device).busId if has_pci else "00000000:00:06.0"],
        "uuid": [N.nvmlDeviceGetUUID(device)], "serial": ["0"], "cpunumber": [0], "mode": [0, 1],
        "graphicsclockmhz": [1980],
    }
    return values.get(p)


# Getters that fill a struct of the caller's: the structs to try. A versioned struct says its size and
# version first.
structs = {
    "nvmlDeviceGetCapabilities": ["c_nvmlDeviceCapabilities_v1_t"],
    "nvmlDeviceGetClockOffsets": ["c_nvmlClockOffset_t"],
    "nvmlDeviceGetGpuFabricInfo": ["c_nvmlGpuFabricInfo_t"],
    "nvmlDeviceGetGpuFabricInfoV": ["c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfo_v3_t"],
    "nvmlDeviceGetNvLinkInfo": ["c_nvmlNvLinkInfo_v1_t", "c_nvmlNvLinkInfo_v2_t"],
    "nvmlDeviceGetNvlinkBwMode": ["c_nvmlNvlinkGetBwMode_v1_t"],
    "nvmlDeviceGetNvlinkSupportedBwModes": ["c_nvmlNvlinkSupportedBwModes_v1_t"],
    "nvmlDeviceGetPciInfoExt": ["nvmlPciInfoExt_v1_t"],
    "nvmlDeviceGetPlatformInfo": ["c_nvmlPlatformInfo_v1_t", "c_nvmlPlatformInfo_v2_t"],
    "nvmlDeviceGetPowerMizerMode_v1": ["c_nvmlDevicePowerMizerModes_v1_t"],
    "nvmlDeviceGetSramEccErrorStatus": ["c_nvmlEccSramErrorStatus_v1_t"],
    "nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts": ["c_nvmlEccSramUniqueUncorrectedErrorCounts_v1_t"],
    "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles": ["c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t"],
    "nvmlDeviceWorkloadPowerProfileGetProfilesInfo": ["c_nvmlWorkloadPowerProfileProfilesInfo_v1_t"],
    "nvmlSystemGetConfComputeSettings": ["c_nvmlSystemConfComputeSettings_v1_t"],
}


def filled(name, struct):
    """Calls a getter of the table above; prints what it says and what is in the struct then."""
    kind = getattr(N, struct, None)
    if kind is None:
        print("not called:", name, struct, "is not of this nvidia-ml-py", file=sys.stderr)
        return
    s = kind()
    if kind._fields_[0][0] == "version":
        s.version = ctypes.sizeof(kind) | int((re.search(r"_v(\d)_t$", struct) or [0, 1])[1]) << 24
    arguments = [ctypes.byref(s)] if name.startswith("nvmlSystem") else [device, ctypes.byref(s)]
    try:
        r = plain(getattr(N, name)(*arguments))
    except N.NVMLError as e:
        r = f"error {e.value}"
    except Exception as e:
        r = f"{type(e).__name__}"
    print(name, struct, r, plain(s) if r in (0, None) else "")


def plain(v, depth=0):
    """A value that prints the same in each run, without addresses."""
    if isinstance(v, (int, float, str, bytes, bool, type(None))):
        return v
    if isinstance(v, (list, tuple)):
        return [plain(x, depth + 1) for x in v[:40]]
    if isinstance(v, ctypes.Array):
        return [plain(x, depth + 1) for x in list(v)[:40]]
    if isinstance(v, ctypes.Structure) and depth < 4:
        return {f[0]: plain(getattr(v, f[0]), depth + 1) for f in v._fields_}
    if isinstance(v, ctypes._Pointer):
        return "handle" if v else None
    return type(v).__name__


def call(name, f, arguments):
    try:
        r = plain(f(*arguments))
    except N.NVMLError as e:
        r = f"error {e.value}"
    except Exception as e:  # the wrapper's own trouble: the same natively
        r = f"{type(e).__name__}"
    print(name, [a if isinstance(a, (int, str, list)) else "device" for a in arguments], r)


# Getters of other things than the device, whose handles it does not give.
OTHERS = ("nvmlVgpu", "nvmlUnit", "nvmlGpuInstance", "nvmlComputeInstance", "nvmlGpm")
for name, f in sorted(vars(N).items()):
    getter = inspect.isfunction(f) and name.startswith("nvml") and "Get" in name
    if not getter or name.startswith(OTHERS):
        continue
    if name in structs:
        for struct in structs[name]:
            filled(name, struct)
        continue
    parameters = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty and
                  p.kind is not p.VAR_POSITIONAL]
    choices = [known(p.name) for p in parameters]
    if None in choices:
        unknown = [p.name for p, c in zip(parameters, choices) if c is None]
        # a struct by reference: its type is in the wrapper, not in the signature
        print("not called:", name, unknown, file=sys.stderr)
        continue
    tries = [[]]
    for c in choices:
        tries = [t + [v] for t in tries for v in c]
    for t in tries[:16]:
        call(name, f, t)
N.nvmlShutdown()
