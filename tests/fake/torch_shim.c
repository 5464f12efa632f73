/* torch_shim.c - as much of LibTorch's stable ABI as operators of an exported package use (tests/cli/export_torch.t).
 *
 * Tensors are nothing but what they claim to be. What a call raises is text. It is written by the names and parameters
 * of PyTorch's shim.h, apart from the exported text, so that a wrong declaration there shows.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_torch.h"

#ifdef FAKE_TORCH_CUDA

int aoti_torch_get_current_cuda_stream(int32_t device, void **stream)
{
	*stream = (void *)(uintptr_t)(0x77 + device);
	return 0;
}

#else

enum { OPERATORS_MOST = 32 };

static struct {
	char name[64], schema[256], keys[64];
	fake_kernel *kernel;
} operators[OPERATORS_MOST];
static int noperators, nhandles, current_device;
static uintptr_t next_address = 0x900000;
static jmp_buf raised;
static char text[1024];

struct handle {
	struct fake_tensor tensor;
	bool deleted;
};

int fake_handles(void)
{
	return nhandles;
}

void fake_set_device(int device)
{
	current_device = device;
}

static void *new_handle(const struct fake_tensor *t)
{
	struct handle *h = calloc(1, sizeof(*h));

	h->tensor = *t;
	nhandles++;
	return h;
}

static const struct fake_tensor *use(void *tensor)
{
	struct handle *h = tensor;

	if (h->deleted) {
		fprintf(stderr, "a tensor is used that was deleted\n");
		abort();
	}
	return &h->tensor;
}

struct fake_tensor fake_tensor_of(uint64_t handle)
{
	return *use((void *)(uintptr_t)handle);
}

int aoti_torch_delete_tensor_object(void *tensor)
{
	(void)use(tensor);
	((struct handle *)tensor)->deleted = true;	/* and never freed, so that a use shows */
	nhandles--;
	return 0;
}

/* ---- dtypes and devices: any numbers, which differ --------------------------------------- */

#define CODE(name, value) int32_t name(void) { return value; }
CODE(aoti_torch_dtype_uint8, 0)
CODE(aoti_torch_dtype_int8, 1)
CODE(aoti_torch_dtype_int16, 2)
CODE(aoti_torch_dtype_int32, 3)
CODE(aoti_torch_dtype_int64, 4)
CODE(aoti_torch_dtype_float16, 5)
CODE(aoti_torch_dtype_float32, 6)
CODE(aoti_torch_dtype_float64, 7)
CODE(aoti_torch_dtype_bool, 11)
CODE(aoti_torch_dtype_bfloat16, 15)
CODE(aoti_torch_dtype_float8_e5m2, 23)
CODE(aoti_torch_dtype_float8_e4m3fn, 24)
CODE(aoti_torch_device_type_cuda, 1)

uint64_t aoti_torch_abi_version(void)
{
	return (uint64_t)2 << 56 | (uint64_t)10 << 48;
}

/* ---- libraries --------------------------------------------------------------------------- */

int aoti_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, void **library)
{
	(void)file;
	(void)line;
	*library = strcmp(ns, "millrace") ? NULL : (void *)1;
	return !*library;
}

int aoti_torch_library_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **library)
{
	(void)file;
	(void)line;
	*library = strdup(key);
	return strcmp(ns, "millrace");
}

static int find(const char *name)
{
	for (int i = 0; i < noperators; i++)
		if (!strcmp(operators[i].name, name))
			return i;
	return -1;
}

int aoti_torch_library_def(void *library, const char *schema)
{
	int n = (int)strcspn(schema, "(");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", n, schema);
	if (library != (void *)1 || noperators == OPERATORS_MOST || find(name) >= 0)
		return 1;
	snprintf(operators[noperators].name, sizeof(name), "%s", name);
	snprintf(operators[noperators++].schema, sizeof(operators->schema), "%s", schema);
	return 0;
}

int torch_library_impl(void *library, const char *name, fake_kernel *kernel, uint64_t version)
{
	int i = find(name);

	if (i < 0 || version > aoti_torch_abi_version())
		return 1;
	strcat(strcat(operators[i].keys, " "), library);
	operators[i].kernel = kernel;
	return 0;
}

void fake_list(void)
{
	for (int i = 0; i < noperators; i++)
		printf("%s on%s\n", operators[i].schema, operators[i].keys);
}

const char *fake_call(const char *name, uint64_t *stack, int nin, int nout)
{
	int i = find(name);

	if (i < 0)
		return "there is no such operator";
	if (setjmp(raised))
		return text;
	operators[i].kernel(stack, (uint64_t)nin, (uint64_t)nout);
	return NULL;
}

uint64_t fake_tensor(const struct fake_tensor *t)
{
	return (uint64_t)(uintptr_t)new_handle(t);
}

void aoti_torch_check(bool holds, const char *function, const char *file, uint32_t line, const char *message)
{
	(void)function;
	(void)file;
	(void)line;
	if (holds)
		return;
	snprintf(text, sizeof(text), "%s", message);
	longjmp(raised, 1);
}

/* ---- tensors ----------------------------------------------------------------------------- */

int aoti_torch_get_data_ptr(void *tensor, void **at)
{
	*at = (void *)(uintptr_t)use(tensor)->address;
	return 0;
}

int aoti_torch_get_dim(void *tensor, int64_t *rank)
{
	*rank = use(tensor)->rank;
	return 0;
}

int aoti_torch_get_sizes(void *tensor, int64_t **sizes)
{
	*sizes = (int64_t *)use(tensor)->sizes;
	return 0;
}

int aoti_torch_get_dtype(void *tensor, int32_t *type)
{
	*type = use(tensor)->type;
	return 0;
}

int aoti_torch_get_device_type(void *tensor, int32_t *kind)
{
	*kind = use(tensor)->device < 0 ? 0 : 1;
	return 0;
}

int aoti_torch_get_device_index(void *tensor, int32_t *index)
{
	*index = use(tensor)->device;
	return 0;
}

int aoti_torch_is_contiguous(void *tensor, bool *contiguous)
{
	*contiguous = !use(tensor)->strided;
	return 0;
}

int aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t type,
	int32_t device_type, int32_t device, void **tensor)
{
	struct fake_tensor t = { .type = type, .rank = (int)rank, .device = device, .address = next_address };
	int64_t stride = 1;

	if (device_type != 1)
		return 1;
	for (int d = (int)rank - 1; d >= 0; d--) {
		t.sizes[d] = sizes[d];
		t.strided |= strides[d] != stride;
		stride *= sizes[d];
	}
	next_address += 0x10000;
	*tensor = new_handle(&t);
	return 0;
}

/* ---- devices ----------------------------------------------------------------------------- */

int aoti_torch_get_current_device_index(int32_t *device)
{
	*device = current_device;
	return 0;
}

int aoti_torch_create_device_guard(int32_t device, void **guard)
{
	*guard = (void *)(uintptr_t)(current_device + 1);
	current_device = device;
	return 0;
}

int aoti_torch_delete_device_guard(void *guard)
{
	current_device = (int)(uintptr_t)guard - 1;
	return 0;
}

#endif
