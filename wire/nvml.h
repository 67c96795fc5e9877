/* SPDX-License-Identifier: Apache-2.0 */
/* NVML as scudafs speaks it: the functions of libnvidia-ml 13.0 with how their arguments travel (words:
 * annotate.h, docs/api.md). Structures that carry a version are sent and returned, as many bytes as their
 * version says. GUARDED functions change a card and need the server's consent. */
#pragma once
#include "wire/annotate.h"
#include "wire/nvml_types.h"

#pragma GCC visibility push(default)

API(nvml, nvmlReturn_t, NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_MEMORY, NVML_ERROR_NOT_SUPPORTED,
		NVML_ERROR_NO_PERMISSION)

/* Local, outside the description's rules: it returns no code. */
const char *nvmlErrorString(nvmlReturn_t result);

nvmlReturn_t nvmlInit_v2(void) LOCAL;
nvmlReturn_t nvmlInitWithFlags(unsigned int flags) LOCAL;
nvmlReturn_t nvmlShutdown(void) LOCAL;
nvmlReturn_t nvmlSystemGetDriverVersion(char *version TEXT(length), unsigned int length)
		CACHED("the session ends");
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version TEXT(length), unsigned int length)
		CACHED("the session ends");
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion) CACHED("the session ends");
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion) CACHED("the session ends");
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name TEXT(length), unsigned int length) SHIM;
nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *hwbcCount INOUT,
		nvmlHwbcEntry_t *hwbcEntries COUNT(hwbcCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpuNumber, unsigned int *count INOUT,
		nvmlDevice_t *deviceArray COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *branchInfo INOUT, unsigned int length);
nvmlReturn_t nvmlUnitGetCount(unsigned int *unitCount);
nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int index, nvmlUnit_t *unit);
nvmlReturn_t nvmlUnitGetUnitInfo(nvmlUnit_t unit, nvmlUnitInfo_t *info);
nvmlReturn_t nvmlUnitGetLedState(nvmlUnit_t unit, nvmlLedState_t *state);
nvmlReturn_t nvmlUnitGetPsuInfo(nvmlUnit_t unit, nvmlPSUInfo_t *psu);
nvmlReturn_t nvmlUnitGetTemperature(nvmlUnit_t unit, unsigned int type, unsigned int *temp);
nvmlReturn_t nvmlUnitGetFanSpeedInfo(nvmlUnit_t unit, nvmlUnitFanSpeeds_t *fanSpeeds);
nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t unit, unsigned int *deviceCount INOUT,
		nvmlDevice_t *devices COUNT(deviceCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
		CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial STRING, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid STRING, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId STRING, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name TEXT(length), unsigned int length)
		CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial TEXT(length), unsigned int length)
		CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int *moduleId);
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *c2cModeInfo);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int nodeSetSize,
		unsigned long *nodeSet COUNT(nodeSetSize), nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int cpuSetSize,
		unsigned long *cpuSet COUNT(cpuSetSize), nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize,
		unsigned long *cpuSet COUNT(cpuSetSize));
nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node);
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode INOUT);
nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *repairStatus INOUT);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
		nvmlGpuTopologyLevel_t *pathInfo);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
		unsigned int *count INOUT, nvmlDevice_t *deviceArray COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
		nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid TEXT(length), unsigned int length)
		CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber)
		CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *partNumber TEXT(length),
		unsigned int length);
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object,
		char *version TEXT(length), unsigned int length);
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version TEXT(length),
		unsigned int length);
nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned int *checksum);
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device);
nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device, unsigned long long *timestamp,
		unsigned long *durationUs);
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t *display);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *isActive);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci INOUT);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) CACHED("the session ends");
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGen);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGenDevice);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *maxLinkWidth);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *currLinkGen);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *currLinkWidth);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
		unsigned int *value);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *value);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock);
nvmlReturn_t nvmlDeviceGetGpcClkVfOffset(nvmlDevice_t device, int *offset);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t clockType,
		unsigned int *clockMHz);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t clockType,
		unsigned int *clockMHz);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId,
		unsigned int *clockMHz);
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t clockType,
		unsigned int *clockMHz);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count INOUT,
		unsigned int *clocksMHz COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memoryClockMHz,
		unsigned int *count INOUT, unsigned int *clocksMHz COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t device, nvmlEnableState_t *isEnabled,
		nvmlEnableState_t *defaultIsEnabled);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed);
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *speed);
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t *fanSpeed INOUT);
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan, unsigned int *targetSpeed);
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned int *minSpeed, unsigned int *maxSpeed);
nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, unsigned int fan,
		nvmlFanControlPolicy_t *policy);
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *numFans);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType,
		unsigned int *temp);
nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t device, nvmlCoolerInfo_t *coolerInfo INOUT);
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature INOUT);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
		nvmlTemperatureThresholds_t thresholdType, unsigned int *temp);
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
		nvmlMarginTemperature_t *marginTempInfo INOUT);
nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned int sensorIndex,
		nvmlGpuThermalSettings_t *pThermalSettings);
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *pState);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
		unsigned long long *clocksEventReasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
		unsigned long long *clocksThrottleReasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
		unsigned long long *supportedClocksEventReasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
		unsigned long long *supportedClocksThrottleReasons);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *pState);
nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device,
		nvmlGpuDynamicPstatesInfo_t *pDynamicPstatesInfo);
nvmlReturn_t nvmlDeviceGetMemClkVfOffset(nvmlDevice_t device, int *offset);
nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type,
		nvmlPstates_t pstate, unsigned int *minClockMHz, unsigned int *maxClockMHz);
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device,
		nvmlPstates_t *pstates COUNT(size / 4), unsigned int size);
nvmlReturn_t nvmlDeviceGetGpcClkMinMaxVfOffset(nvmlDevice_t device, int *minOffset, int *maxOffset);
nvmlReturn_t nvmlDeviceGetMemClkMinMaxVfOffset(nvmlDevice_t device, int *minOffset, int *maxOffset);
nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info INOUT);
nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDevicePerfModes_t *perfModes INOUT);
nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device,
		nvmlDeviceCurrentClockFreqs_t *currentClockFreqs INOUT);
nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *minLimit,
		unsigned int *maxLimit);
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *defaultLimit);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power);
nvmlReturn_t nvmlDeviceGetPowerMizerMode_v1(nvmlDevice_t device,
		nvmlDevicePowerMizerModes_v1_t *powerMizerMode INOUT);
nvmlReturn_t nvmlDeviceSetPowerMizerMode_v1(nvmlDevice_t device,
		nvmlDevicePowerMizerModes_v1_t *powerMizerMode INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit);
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device, nvmlGpuOperationMode_t *current OPTIONAL,
		nvmlGpuOperationMode_t *pending OPTIONAL);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory INOUT);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device, nvmlDramEncryptionInfo_t *current INOUT,
		nvmlDramEncryptionInfo_t *pending INOUT);
nvmlReturn_t nvmlDeviceSetDramEncryptionMode(nvmlDevice_t device,
		const nvmlDramEncryptionInfo_t *dramEncryption) GUARDED;
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
		nvmlEnableState_t *pending);
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *defaultMode);
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *boardId);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *multiGpuBool);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
		nvmlEccCounterType_t counterType, unsigned long long *eccCounts);
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
		nvmlEccCounterType_t counterType, nvmlEccErrorCounts_t *eccCounts);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
		nvmlEccCounterType_t counterType, nvmlMemoryLocation_t locationType,
		unsigned long long *count);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *utilization,
		unsigned int *samplingPeriodUs);
nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, nvmlEncoderType_t encoderQueryType,
		unsigned int *encoderCapacity);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessionCount,
		unsigned int *averageFps, unsigned int *averageLatency);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *sessionCount INOUT,
		nvmlEncoderSessionInfo_t *sessionInfos COUNT(sessionCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *utilization,
		unsigned int *samplingPeriodUs);
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *utilization,
		unsigned int *samplingPeriodUs);
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *utilization,
		unsigned int *samplingPeriodUs);
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *fbcStats);
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *sessionCount INOUT,
		nvmlFBCSessionInfo_t *sessionInfo COUNT(sessionCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, nvmlDriverModel_t *current OPTIONAL,
		nvmlDriverModel_t *pending OPTIONAL);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version TEXT(length), unsigned int length);
nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device,
		nvmlBridgeChipHierarchy_t *bridgeHierarchy);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount INOUT,
		nvmlProcessInfo_t *infos COUNT(infoCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount INOUT,
		nvmlProcessInfo_t *infos COUNT(infoCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount INOUT,
		nvmlProcessInfo_t *infos COUNT(infoCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist) HAND;
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard);
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t apiType,
		nvmlEnableState_t *isRestricted);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
		unsigned long long lastSeenTimeStamp, nvmlValueType_t *sampleValType,
		unsigned int *sampleCount INOUT,
		nvmlSample_t *samples COUNT(sampleCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1Memory);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t perfPolicyType,
		nvmlViolationTime_t *violTime);
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int *irqNum);
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *numCores);
nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, nvmlPowerSource_t *powerSource);
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *busWidth);
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int *maxSpeed);
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *pcieSpeed);
nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device, unsigned int *adaptiveClockStatus);
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t *type);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *gpuFabricInfo);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *gpuFabricInfo INOUT);
nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *capabilities);
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state);
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
		nvmlConfComputeMemSizeInfo_t *memInfo);
nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *isAcceptingWork);
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetConfComputeGpuCertificate(nvmlDevice_t device,
		nvmlConfComputeGpuCertificate_t *gpuCert);
nvmlReturn_t nvmlDeviceGetConfComputeGpuAttestationReport(nvmlDevice_t device,
		nvmlConfComputeGpuAttestationReport_t *gpuAtstReport INOUT);
nvmlReturn_t nvmlSystemGetConfComputeKeyRotationThresholdInfo(
		nvmlConfComputeGetKeyRotationThresholdInfo_t *pKeyRotationThrInfo INOUT);
nvmlReturn_t nvmlDeviceSetConfComputeUnprotectedMemSize(nvmlDevice_t device, unsigned long long sizeKiB)
		GUARDED;
nvmlReturn_t nvmlSystemSetConfComputeGpusReadyState(unsigned int isAcceptingWork) GUARDED;
nvmlReturn_t nvmlSystemSetConfComputeKeyRotationThresholdInfo(
		nvmlConfComputeSetKeyRotationThresholdInfo_t *pKeyRotationThrInfo INOUT) GUARDED;
nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings INOUT);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version TEXT(64));
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *isEnabled,
		unsigned int *defaultMode);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *status INOUT);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device,
		nvmlPowerValue_v2_t *powerValue INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
		nvmlAccountingStats_t *stats);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count INOUT,
		unsigned int *pids COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *bufferSize);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
		unsigned int *pageCount INOUT, unsigned long long *addresses COUNT(pageCount) OPTIONAL)
		ALWAYS;
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
		unsigned int *pageCount INOUT, unsigned long long *addresses COUNT(pageCount) OPTIONAL,
		unsigned long long *timestamps COUNT(pageCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *isPending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows,
		unsigned int *isPending, unsigned int *failureOccurred);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
		nvmlRowRemapperHistogramValues_t *values);
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch);
nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t device, nvmlClkMonStatus_t *status);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
		nvmlProcessUtilizationSample_t *utilization COUNT(processSamplesCount) OPTIONAL,
		unsigned int *processSamplesCount INOUT, unsigned long long lastSeenTimeStamp) ALWAYS;
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
		nvmlProcessesUtilizationInfo_t *procesesUtilInfo) HAND;
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *platformInfo INOUT);
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t *pdi INOUT);
nvmlReturn_t nvmlDeviceSetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *hostname INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *hostname);
nvmlReturn_t nvmlUnitSetLedState(nvmlUnit_t unit, nvmlLedColor_t color) GUARDED;
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode) GUARDED;
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode) GUARDED;
nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t ecc) GUARDED;
nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t counterType) GUARDED;
nvmlReturn_t nvmlDeviceSetDriverModel(nvmlDevice_t device, nvmlDriverModel_t driverModel,
		unsigned int flags) GUARDED;
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int minGpuClockMHz,
		unsigned int maxGpuClockMHz) GUARDED;
nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int minMemClockMHz,
		unsigned int maxMemClockMHz) GUARDED;
nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memClockMHz,
		unsigned int graphicsClockMHz) GUARDED;
nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceSetAutoBoostedClocksEnabled(nvmlDevice_t device, nvmlEnableState_t enabled) GUARDED;
nvmlReturn_t nvmlDeviceSetDefaultAutoBoostedClocksEnabled(nvmlDevice_t device, nvmlEnableState_t enabled,
		unsigned int flags) GUARDED;
nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_t device, unsigned int fan) GUARDED;
nvmlReturn_t nvmlDeviceSetFanControlPolicy(nvmlDevice_t device, unsigned int fan,
		nvmlFanControlPolicy_t policy) GUARDED;
nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_t device,
		nvmlTemperatureThresholds_t thresholdType, int *temp) GUARDED;
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit) GUARDED;
nvmlReturn_t nvmlDeviceSetGpuOperationMode(nvmlDevice_t device, nvmlGpuOperationMode_t mode) GUARDED;
nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t apiType,
		nvmlEnableState_t isRestricted) GUARDED;
nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int speed) GUARDED;
nvmlReturn_t nvmlDeviceSetGpcClkVfOffset(nvmlDevice_t device, int offset) GUARDED;
nvmlReturn_t nvmlDeviceSetMemClkVfOffset(nvmlDevice_t device, int offset) GUARDED;
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode) GUARDED;
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device) GUARDED;
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
		nvmlNvLinkCapability_t capability, unsigned int *capResult);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
		nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
		nvmlNvLinkErrorCounter_t counter, unsigned long long *counterValue);
nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int link) GUARDED;
nvmlReturn_t nvmlDeviceSetNvLinkUtilizationControl(nvmlDevice_t device, unsigned int link,
		unsigned int counter, nvmlNvLinkUtilizationControl_t *control INOUT,
		unsigned int reset) GUARDED;
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationControl(nvmlDevice_t device, unsigned int link,
		unsigned int counter, nvmlNvLinkUtilizationControl_t *control);
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int link,
		unsigned int counter, unsigned long long *rxcounter, unsigned long long *txcounter);
nvmlReturn_t nvmlDeviceFreezeNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int link,
		unsigned int counter, nvmlEnableState_t freeze) GUARDED;
nvmlReturn_t nvmlDeviceResetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int link,
		unsigned int counter) GUARDED;
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
		nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType);
nvmlReturn_t nvmlDeviceSetNvLinkDeviceLowPowerThreshold(nvmlDevice_t device,
		nvmlNvLinkPowerThres_t *info INOUT) GUARDED;
nvmlReturn_t nvmlSystemSetNvlinkBwMode(unsigned int nvlinkBwMode) GUARDED;
nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int *nvlinkBwMode);
nvmlReturn_t nvmlDeviceGetNvlinkSupportedBwModes(nvmlDevice_t device,
		nvmlNvlinkSupportedBwModes_t *supportedBwMode INOUT);
nvmlReturn_t nvmlDeviceGetNvlinkBwMode(nvmlDevice_t device, nvmlNvlinkGetBwMode_t *getBwMode INOUT);
nvmlReturn_t nvmlDeviceSetNvlinkBwMode(nvmlDevice_t device, nvmlNvlinkSetBwMode_t *setBwMode INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t device, nvmlNvLinkInfo_t *info INOUT);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) ACTS;
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) HAND ACTS;
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set DROP);
nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *request INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *request INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *request INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t *pciInfo INOUT, nvmlEnableState_t newState) GUARDED;
nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *pciInfo INOUT, nvmlEnableState_t *currentState);
nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_t *pciInfo INOUT, nvmlDetachGpuState_t gpuState,
		nvmlPcieLinkState_t linkState) GUARDED;
nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_t *pciInfo INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount,
		nvmlFieldValue_t *values INOUT COUNT(valuesCount)) SHIM;
nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int valuesCount,
		nvmlFieldValue_t *values INOUT COUNT(valuesCount)) GUARDED;
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t *pVirtualMode);
nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device, nvmlHostVgpuMode_t *pHostVgpuMode);
nvmlReturn_t nvmlDeviceSetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t virtualMode)
		GUARDED;
nvmlReturn_t nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t device,
		nvmlVgpuHeterogeneousMode_t *pHeterogeneousMode INOUT);
nvmlReturn_t nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t device,
		const nvmlVgpuHeterogeneousMode_t *pHeterogeneousMode) GUARDED;
nvmlReturn_t nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t vgpuInstance,
		nvmlVgpuPlacementId_t *pPlacement INOUT);
nvmlReturn_t nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t device, nvmlVgpuTypeId_t vgpuTypeId,
		nvmlVgpuPlacementList_t *pPlacementList INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t device, nvmlVgpuTypeId_t vgpuTypeId,
		nvmlVgpuPlacementList_t *pPlacementList INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t vgpuTypeId, unsigned long long *gspHeapSize);
nvmlReturn_t nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t vgpuTypeId, unsigned long long *fbReservation);
nvmlReturn_t nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t vgpuInstance,
		nvmlVgpuRuntimeState_t *pState INOUT);
nvmlReturn_t nvmlDeviceSetVgpuCapabilities(nvmlDevice_t device, nvmlDeviceVgpuCapability_t capability,
		nvmlEnableState_t state) GUARDED;
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device,
		nvmlGridLicensableFeatures_t *pGridLicensableFeatures INOUT);
nvmlReturn_t nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability, unsigned int *capResult);
nvmlReturn_t nvmlDeviceGetVgpuCapabilities(nvmlDevice_t device, nvmlDeviceVgpuCapability_t capability,
		unsigned int *capResult);
nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_t device, unsigned int *vgpuCount INOUT,
		nvmlVgpuTypeId_t *vgpuTypeIds COUNT(vgpuCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetCreatableVgpus(nvmlDevice_t device, unsigned int *vgpuCount INOUT,
		nvmlVgpuTypeId_t *vgpuTypeIds COUNT(vgpuCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t vgpuTypeId, char *vgpuTypeClass, unsigned int *size)
		UNSUPPORTED("not remoted");
nvmlReturn_t nvmlVgpuTypeGetName(nvmlVgpuTypeId_t vgpuTypeId, char *vgpuTypeName, unsigned int *size)
		UNSUPPORTED("not remoted");
nvmlReturn_t nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t vgpuTypeId,
		unsigned int *gpuInstanceProfileId);
nvmlReturn_t nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t vgpuTypeId, unsigned long long *deviceID,
		unsigned long long *subsystemID);
nvmlReturn_t nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t vgpuTypeId, unsigned long long *fbSize);
nvmlReturn_t nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t vgpuTypeId, unsigned int *numDisplayHeads);
nvmlReturn_t nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t vgpuTypeId, unsigned int displayIndex,
		unsigned int *xdim, unsigned int *ydim);
nvmlReturn_t nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t vgpuTypeId, char *vgpuTypeLicenseString TEXT(size),
		unsigned int size);
nvmlReturn_t nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t vgpuTypeId, unsigned int *frameRateLimit);
nvmlReturn_t nvmlVgpuTypeGetMaxInstances(nvmlDevice_t device, nvmlVgpuTypeId_t vgpuTypeId,
		unsigned int *vgpuInstanceCount);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t vgpuTypeId,
		unsigned int *vgpuInstanceCountPerVm);
nvmlReturn_t nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t vgpuTypeId, nvmlVgpuTypeBar1Info_t *bar1Info INOUT);
nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t device, unsigned int *vgpuCount INOUT,
		nvmlVgpuInstance_t *vgpuInstances COUNT(vgpuCount) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t vgpuInstance, char *vmId TEXT(size),
		unsigned int size, nvmlVgpuVmIdType_t *vmIdType);
nvmlReturn_t nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t vgpuInstance, char *uuid TEXT(size),
		unsigned int size);
nvmlReturn_t nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t vgpuInstance,
		char *version TEXT(length), unsigned int length);
nvmlReturn_t nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t vgpuInstance, unsigned long long *fbUsage);
nvmlReturn_t nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t vgpuInstance, unsigned int *licensed);
nvmlReturn_t nvmlVgpuInstanceGetType(nvmlVgpuInstance_t vgpuInstance, nvmlVgpuTypeId_t *vgpuTypeId);
nvmlReturn_t nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t vgpuInstance, unsigned int *frameRateLimit);
nvmlReturn_t nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t vgpuInstance, nvmlEnableState_t *eccMode);
nvmlReturn_t nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t vgpuInstance,
		unsigned int *encoderCapacity);
nvmlReturn_t nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t vgpuInstance,
		unsigned int encoderCapacity) GUARDED;
nvmlReturn_t nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t vgpuInstance, unsigned int *sessionCount,
		unsigned int *averageFps, unsigned int *averageLatency);
nvmlReturn_t nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t vgpuInstance,
		unsigned int *sessionCount INOUT, nvmlEncoderSessionInfo_t *sessionInfo COUNT(sessionCount)
		OPTIONAL) ALWAYS;
nvmlReturn_t nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t vgpuInstance, nvmlFBCStats_t *fbcStats);
nvmlReturn_t nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t vgpuInstance,
		unsigned int *sessionCount INOUT, nvmlFBCSessionInfo_t *sessionInfo COUNT(sessionCount)
		OPTIONAL) ALWAYS;
nvmlReturn_t nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t vgpuInstance, unsigned int *gpuInstanceId);
nvmlReturn_t nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t vgpuInstance, char *vgpuPciId,
		unsigned int *length) UNSUPPORTED("not remoted");
nvmlReturn_t nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t vgpuTypeId, nvmlVgpuCapability_t capability,
		unsigned int *capResult);
nvmlReturn_t nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t vgpuInstance, char *mdevUuid TEXT(size),
		unsigned int size);
nvmlReturn_t nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuTypeIdInfo_t *pVgpus INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_t *pMaxInstance INOUT);
nvmlReturn_t nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t gpuInstance,
		nvmlActiveVgpuInstanceInfo_t *pVgpuInstanceInfo INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuSchedulerState_t *pScheduler INOUT) GUARDED;
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuSchedulerStateInfo_t *pSchedulerStateInfo INOUT);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuSchedulerLogInfo_t *pSchedulerLogInfo INOUT);
nvmlReturn_t nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuCreatablePlacementInfo_t *pCreatablePlacementInfo INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t gpuInstance,
		nvmlVgpuHeterogeneousMode_t *pHeterogeneousMode INOUT);
nvmlReturn_t nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t gpuInstance,
		const nvmlVgpuHeterogeneousMode_t *pHeterogeneousMode) GUARDED;
nvmlReturn_t nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t vgpuInstance, nvmlVgpuMetadata_t *vgpuMetadata,
		unsigned int *bufferSize) UNSUPPORTED("vGPU hosts are not remoted");
nvmlReturn_t nvmlDeviceGetVgpuMetadata(nvmlDevice_t device, nvmlVgpuPgpuMetadata_t *pgpuMetadata,
		unsigned int *bufferSize) UNSUPPORTED("vGPU hosts are not remoted");
nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpuMetadata, nvmlVgpuPgpuMetadata_t *pgpuMetadata,
		nvmlVgpuPgpuCompatibility_t *compatibilityInfo) HAND;
nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_t device, char *pgpuMetadata,
		unsigned int *bufferSize) UNSUPPORTED("not remoted");
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t device, nvmlVgpuSchedulerLog_t *pSchedulerLog INOUT);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t device,
		nvmlVgpuSchedulerGetState_t *pSchedulerState INOUT);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t device,
		nvmlVgpuSchedulerCapabilities_t *pCapabilities INOUT);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t device,
		nvmlVgpuSchedulerSetState_t *pSchedulerState INOUT) GUARDED;
nvmlReturn_t nvmlGetVgpuVersion(nvmlVgpuVersion_t *supported, nvmlVgpuVersion_t *current);
nvmlReturn_t nvmlSetVgpuVersion(nvmlVgpuVersion_t *vgpuVersion INOUT) GUARDED;
nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_t device, unsigned long long lastSeenTimeStamp,
		nvmlValueType_t *sampleValType, unsigned int *vgpuInstanceSamplesCount INOUT,
		nvmlVgpuInstanceUtilizationSample_t *utilizationSamples COUNT(vgpuInstanceSamplesCount)
		OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t device,
		nvmlVgpuInstancesUtilizationInfo_t *vgpuUtilInfo INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t device, unsigned long long lastSeenTimeStamp,
		unsigned int *vgpuProcessSamplesCount INOUT,
		nvmlVgpuProcessUtilizationSample_t *utilizationSamples COUNT(vgpuProcessSamplesCount)
		OPTIONAL) ALWAYS;
nvmlReturn_t nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t device,
		nvmlVgpuProcessesUtilizationInfo_t *vgpuProcUtilInfo INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t vgpuInstance, nvmlEnableState_t *mode);
nvmlReturn_t nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t vgpuInstance, unsigned int *count INOUT,
		unsigned int *pids COUNT(count) OPTIONAL) ALWAYS;
nvmlReturn_t nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t vgpuInstance, unsigned int pid,
		nvmlAccountingStats_t *stats);
nvmlReturn_t nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t vgpuInstance) GUARDED;
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t vgpuInstance,
		nvmlVgpuLicenseInfo_t *licenseInfo);
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *deviceCount);
nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index, nvmlExcludedDeviceInfo_t *info);
nvmlReturn_t nvmlDeviceReadWritePRM_v1(nvmlDevice_t device, nvmlPRMTLV_v1_t *buffer INOUT) GUARDED;
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activationStatus)
		GUARDED;
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
		nvmlGpuInstanceProfileInfo_t *info);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
		nvmlGpuInstanceProfileInfo_v2_t *info INOUT);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int profileId,
		nvmlGpuInstanceProfileInfo_v2_t *info INOUT);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int profileId,
		nvmlGpuInstancePlacement_t *placements COUNT(count) OPTIONAL, unsigned int *count);
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profileId,
		unsigned int *count);
nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profileId,
		nvmlGpuInstance_t *gpuInstance) GUARDED;
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profileId,
		const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *gpuInstance) GUARDED;
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t gpuInstance DROP) GUARDED;
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profileId,
		nvmlGpuInstance_t *gpuInstances COUNT(count), unsigned int *count);
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
		nvmlGpuInstance_t *gpuInstance);
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gpuInstance, nvmlGpuInstanceInfo_t *info INOUT)
		UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t gpuInstance,
		unsigned int profile, unsigned int engProfile, nvmlComputeInstanceProfileInfo_t *info);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t gpuInstance,
		unsigned int profile, unsigned int engProfile, nvmlComputeInstanceProfileInfo_v2_t *info
		INOUT);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t gpuInstance,
		unsigned int profileId, unsigned int *count);
nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t gpuInstance,
		unsigned int profileId, nvmlComputeInstancePlacement_t *placements COUNT(count) OPTIONAL,
		unsigned int *count);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
		nvmlComputeInstance_t *computeInstance) GUARDED;
nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t gpuInstance,
		unsigned int profileId, const nvmlComputeInstancePlacement_t *placement,
		nvmlComputeInstance_t *computeInstance) GUARDED;
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t computeInstance DROP) GUARDED;
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
		nvmlComputeInstance_t *computeInstances COUNT(count), unsigned int *count);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gpuInstance, unsigned int id,
		nvmlComputeInstance_t *computeInstance);
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t computeInstance,
		nvmlComputeInstanceInfo_t *info INOUT) UNSUPPORTED("holds pointers");
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
		CACHED("a moment later");
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
		nvmlDevice_t *migDevice);
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice, nvmlDevice_t *device);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metricsGet) HAND ACTS;
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t gpmSample DROP);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *gpmSample) ACTS;
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t gpmSample);
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpuInstanceId, nvmlGpmSample_t gpmSample);
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport INOUT);
nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int *state);
nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t device, unsigned int state) GUARDED;
nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_t *caps INOUT);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetProfilesInfo(nvmlDevice_t device,
		nvmlWorkloadPowerProfileProfilesInfo_t *profilesInfo INOUT);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(nvmlDevice_t device,
		nvmlWorkloadPowerProfileCurrentProfiles_t *currentProfiles INOUT);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(nvmlDevice_t device,
		nvmlWorkloadPowerProfileRequestedProfiles_t *requestedProfiles INOUT) GUARDED;
nvmlReturn_t nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(nvmlDevice_t device,
		nvmlWorkloadPowerProfileRequestedProfiles_t *requestedProfiles INOUT) GUARDED;
nvmlReturn_t nvmlDevicePowerSmoothingActivatePresetProfile(nvmlDevice_t device,
		nvmlPowerSmoothingProfile_t *profile INOUT) GUARDED;
nvmlReturn_t nvmlDevicePowerSmoothingUpdatePresetProfileParam(nvmlDevice_t device,
		nvmlPowerSmoothingProfile_t *profile INOUT) GUARDED;
nvmlReturn_t nvmlDevicePowerSmoothingSetState(nvmlDevice_t device, nvmlPowerSmoothingState_t *state INOUT)
		GUARDED;
nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(nvmlDevice_t device,
		nvmlEccSramUniqueUncorrectedErrorCounts_t *errorCounts INOUT) UNSUPPORTED("holds pointers");

/* Newer than the header of 13.0; a driver of 580 has them. */
nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info);
nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device,
		nvmlUnrepairableMemoryStatus_v1_t *unrepairableMemoryStatus);
nvmlReturn_t nvmlDeviceReadPRMCounters_v1(nvmlDevice_t device,
		nvmlPRMCounterList_v1_t *counterList) UNSUPPORTED("holds pointers");

/* The names that programs of older days ask for. */
nvmlReturn_t nvmlInit(void) SAME(nvmlInit_v2);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount) SAME(nvmlDeviceGetCount_v2);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
		SAME(nvmlDeviceGetHandleByIndex_v2);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId,
		nvmlDevice_t *device) SAME(nvmlDeviceGetHandleByPciBusId_v2);
nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) LOCAL;
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) LOCAL;
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) LOCAL;
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
		LOCAL;
nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, nvmlDriverModel_t *current,
		nvmlDriverModel_t *pending) SAME(nvmlDeviceGetDriverModel_v2);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v1_t *infos) LOCAL;
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v1_t *infos) LOCAL;
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v1_t *infos) LOCAL;
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v2_t *infos) SAME(nvmlDeviceGetComputeRunningProcesses_v3);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v2_t *infos) SAME(nvmlDeviceGetGraphicsRunningProcesses_v3);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
		nvmlProcessInfo_v2_t *infos) SAME(nvmlDeviceGetMPSComputeRunningProcesses_v3);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) LOCAL;
nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned int *deviceCount) SAME(nvmlGetExcludedDeviceCount);
nvmlReturn_t nvmlGetBlacklistDeviceInfoByIndex(unsigned int index,
		nvmlExcludedDeviceInfo_t *info) SAME(nvmlGetExcludedDeviceInfoByIndex);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int profileId,
		nvmlGpuInstancePlacement_t *placements,
		unsigned int *count) SAME(nvmlDeviceGetGpuInstancePossiblePlacements_v2);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t device,
		nvmlGridLicensableFeatures_t *pGridLicensableFeatures) UNSUPPORTED("superseded by _v4");
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t device,
		nvmlGridLicensableFeatures_t *pGridLicensableFeatures) UNSUPPORTED("superseded by _v4");
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t device,
		nvmlGridLicensableFeatures_t *pGridLicensableFeatures) UNSUPPORTED("superseded by _v4");
nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_t *pciInfo) UNSUPPORTED("superseded by _v2");
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t computeInstance,
		nvmlComputeInstanceInfo_t *info) UNSUPPORTED("superseded by _v2");
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t vgpuInstance,
		nvmlVgpuLicenseInfo_t *licenseInfo) UNSUPPORTED("superseded by _v2");

/* Not NVML's: what programs ask first, of every device, in one answer (devshim/nvml/cached.c). */
nvmlReturn_t nvmlScudaDevices(void) HAND PRIVATE ACTS;

#pragma GCC visibility pop
