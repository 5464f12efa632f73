/* fake_torch.h - what a test asks of the fake LibTorch (torch_shim.c). */
#ifndef FAKE_TORCH_H
#define FAKE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

typedef void fake_kernel(uint64_t *stack, uint64_t nin, uint64_t nout);

struct fake_tensor {
	int type, rank;			/* type: torch's code of a dtype */
	int64_t sizes[8];
	int device;			/* -1: the CPU */
	uintptr_t address;
	bool strided;			/* not contiguous */
};

uint64_t fake_tensor(const struct fake_tensor *t);	/* a new handle, for a stack */
struct fake_tensor fake_tensor_of(uint64_t handle);
int fake_handles(void);			/* that were not deleted */
void fake_set_device(int device);
void fake_list(void);			/* print the schemas of all operators */
/* Call an operator; the text that it raises, or NULL. */
const char *fake_call(const char *name, uint64_t *stack, int nin, int nout);

#endif
