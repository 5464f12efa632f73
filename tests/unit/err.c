#include "base/err.h"

#include <stdlib.h>

#include "tap.h"

static enum err_code fail_if(bool fails, struct err *e)
{
	if (fails)
		return err_set(e, ERR_INPUT, NOWHERE, "it %s", "fails");
	return OK;
}

static enum err_code outer(bool fails, int *reached, struct err *e)
{
	TRY(fail_if(fails, e));
	*reached = 1;
	return OK;
}

static void test_err(void)
{
	struct err e = { .msg = "untouched" };
	int reached = 0;
	char long_text[2000];

	is_int(outer(false, &reached, &e), OK, "success is OK");
	is_str(e.msg, "untouched", "and leaves the record alone");
	is_int(reached, 1, "TRY goes on");
	reached = 0;
	is_int(outer(true, &reached, &e), ERR_INPUT, "a failure is its code");
	is_int(reached, 0, "TRY returns it");
	is_str(e.msg, "it fails", "the message is formatted");
	is_int(e.code, ERR_INPUT, "and the code kept");
	is_str(e.file, "", "no location has no file");
	is_int(e.line, 0, "and line 0");

	err_set(&e, ERR_ILLEGAL, (struct srcloc){ "gemm.lua", 12 }, "stage %d", 3);
	is_str(e.file, "gemm.lua", "the file is copied");
	is_int(e.line, 12, "and the line");
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	err_set(&e, ERR_IO, (struct srcloc){ long_text, 1 }, "%s", long_text);
	is_int((long long)strlen(e.msg), sizeof(e.msg) - 1, "a long message is truncated");
	is_int((long long)strlen(e.file), sizeof(e.file) - 1, "and a long file name");
}

static void test_stop(void)
{
	volatile int flag = 0;
	struct stop never = { NULL }, asked = { &flag };

	ok(!stop_asked(NULL) && !stop_asked(&never), "without a flag nobody asks to stop");
	ok(!stop_asked(&asked), "a clear flag does not ask");
	flag = 1;
	ok(stop_asked(&asked), "a set flag does");
}

static void test_nearest(void)
{
	static const char *const names[] = {
		"softmax", "load_q", "load_k", "mma_qk", "mma_pv", "m" };
	static const char *const words[] = { "gemm_cooperative", "flash_attention_gradients", "flash_attention", "bound", "stop" };
	static const char *const devices[] = { "a100", "h100", "h200" };
	char long_name[100];

	is_str(nearest_name("sofmax", names, LEN(names)), "softmax", "a letter left out");
	is_str(nearest_name("sotfmax", names, LEN(names)), "softmax", "two letters exchanged");
	is_str(nearest_name("load_q", names, LEN(names)), "load_q", "the name itself");
	is_str(nearest_name("mma_kq", names, LEN(names)), "mma_qk", "the nearer of two");
	is_str(nearest_name("H100", devices, LEN(devices)), "h100", "a name in other letter case");
	ok(!nearest_name("epilogue", names, LEN(names)), "nothing near");
	ok(!nearest_name("n", names, LEN(names)), "one letter for another may mean any");
	ok(!nearest_name("stax", words, LEN(words)), "half of the letters are too far");
	is_str(nearest_name("gemm_coop", words, LEN(words)), "gemm_cooperative", "the beginning of a name");
	is_str(nearest_name("attention", words, LEN(words)), "flash_attention", "a word of a name, the shortest");
	ok(!nearest_name("tent", words, LEN(words)), "  but no other part");
	ok(!nearest_name("xyz", names, LEN(names)), "three letters for one are too far");
	ok(!nearest_name("m", names, 0), "no names");
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	ok(!nearest_name(long_name, names, LEN(names)), "a name longer than any");
}

static void test_numbers(void)
{
	int wrong = 0;

	for (int64_t a = -50; a <= 50; a++) {
		for (int64_t b = 1; b <= 9; b++) {
			int64_t q = floor_div(a, b), r = floor_mod(a, b);

			wrong += q * b + r != a || r < 0 || r >= b;
			wrong += ceil_div(a, b) != -floor_div(-a, b);
		}
	}
	is_int(wrong, 0, "floor and ceiling division");
	is_int(min_i64(-1, 1), -1, "the smaller");
	is_int(max_i64(-1, 1), 1, "the larger");
}

int main(void)
{
	test_err();
	test_stop();
	test_nearest();
	test_numbers();
	return tap_done();
}
