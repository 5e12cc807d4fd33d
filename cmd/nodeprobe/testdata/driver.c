// A driver's library with two GPUs: a partitioned A100-40GB, 3g.20gb at memory
// slice 4 with two compute instances and 1g.5gb at 0, and an L4 without MIG. Only
// what the probe may call is here: calling anything else ends the process.
// BEFORE_MIG leaves out what drivers before R450 lack, BEFORE_NAMES what those
// before R510 lack.
#include <string.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "nvml.h"

#define OK NVML_SUCCESS
#define IS(h, x) ((void *)(h).handle == (void *)&(x))
static int a100, l4, three, one, devices[3], events;

nvmlReturn_t nvmlInit_v2(void) { return OK; }
nvmlReturn_t nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(nvmlReturn_t r) { return "an error"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned n) { strncpy(v, "580.126.09", n); return OK; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return OK; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) { d->handle = (void *)(i ? &l4 : &a100); return OK; }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned n) { strncpy(s, IS(d, l4) ? "NVIDIA L4" : "NVIDIA A100-SXM4-40GB", n); return OK; }
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned *n) { *n = IS(d, l4) ? 0 : 1; return OK; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) { memset(m, 0, sizeof *m); m->total = (IS(d, l4) ? 23034ULL : 40960ULL) << 20; return OK; }
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *n) { *n = 0; return OK; }
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *s) { s->handle = (void *)&events; return OK; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s) { return OK; }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *t) { *t = nvmlEventTypeXidCriticalError; return OK; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long t, nvmlEventSet_t s) { return t == nvmlEventTypeXidCriticalError ? OK : NVML_ERROR_NOT_SUPPORTED; }

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned n) {
	static const char *mig[] = {"MIG-one", "MIG-three-a", "MIG-three-b"};
	for (int i = 0; i < 3; i++)
		if (IS(d, devices[i])) {
			strncpy(s, mig[i], n);
			return OK;
		}
	strncpy(s, IS(d, l4) ? "GPU-l4" : "GPU-a100", n);
	return OK;
}

#ifndef BEFORE_MIG
// profile enum, id, compute slices, max, memory slices, MiB, starts
static const struct { unsigned nvml, id, g, max, size, mib, n, starts[7]; const char *name; } profiles[] = {
	{0, 19, 1, 7, 1, 4864, 7, {0, 1, 2, 3, 4, 5, 6}, "1g.5gb"},
	{2, 9, 3, 2, 4, 19968, 2, {0, 4}, "3g.20gb"},
};

static int by(unsigned nvml, unsigned id) {
	for (int i = 0; i < 2; i++)
		if (profiles[i].nvml == nvml || profiles[i].id == id)
			return i;
	return -1;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *then) {
	*now = *then = 1;
	return IS(d, l4) ? NVML_ERROR_NOT_SUPPORTED : OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned p, nvmlGpuInstanceProfileInfo_t *info) {
	int i = by(p, -1);
	if (i < 0)
		return p < NVML_GPU_INSTANCE_PROFILE_COUNT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
	memset(info, 0, sizeof *info);
	info->id = profiles[i].id, info->sliceCount = profiles[i].g, info->instanceCount = profiles[i].max, info->memorySizeMB = profiles[i].mib;
	return OK;
}

#ifndef BEFORE_NAMES
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t d, unsigned p, nvmlGpuInstanceProfileInfo_v2_t *info) {
	if (info->version != nvmlGpuInstanceProfileInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH; // as R510: no version 3 yet
	strcpy(info->name, "MIG ");
	strcat(info->name, profiles[by(p, -1)].name);
	strcat(info->name, "!"); // not what the table says
	return OK;
}
#endif

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t d, unsigned id, nvmlGpuInstancePlacement_t *at, unsigned *n) {
	int i = by(-1, id);
	*n = profiles[i].n;
	for (unsigned k = 0; at && k < *n; k++)
		at[k].start = profiles[i].starts[k], at[k].size = profiles[i].size;
	return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t d, unsigned id, nvmlGpuInstance_t *out, unsigned *n) {
	*n = 1;
	out[0].handle = (void *)(id == 9 ? &three : &one);
	return OK;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gi, nvmlGpuInstanceInfo_t *info) {
	int t = IS(gi, three);
	info->device.handle = (void *)&a100, info->id = t ? 1 : 13, info->profileId = t ? 9 : 19;
	info->placement.start = t ? 4 : 0, info->placement.size = t ? 4 : 1;
	return OK;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *n) { *n = 7; return OK; }

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned i, nvmlDevice_t *out) {
	if (i % 2 == 0) // there are holes
		return NVML_ERROR_NOT_FOUND;
	out->handle = (void *)&devices[i / 2];
	return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *id) { *id = IS(d, devices[0]) ? 13 : 1; return OK; }
#endif
