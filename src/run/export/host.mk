# @NAME@_host.mk - builds @NAME@_host, @PROGRAM@ on the CPU: make -f @NAME@_host.mk
CC = cc
CFLAGS = -O0 -g
FLAGS = -std=gnu11 -fno-strict-aliasing -fwrapv -ffp-contract=off -Imillrace -Imillrace/host
OBJECTS = @NAME@_host.o millrace_rt.o @OBJECTS@

@NAME@_host: $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $(OBJECTS) -lm
@NAME@_host.o: @NAME@_host.c
	$(CC) $(CFLAGS) $(FLAGS) -c -o $@ $<
millrace_rt.o: millrace/host/rt.c
	$(CC) -O2 -g $(FLAGS) -c -o $@ $<
@RULES@clean:
	rm -f @NAME@_host $(OBJECTS)
.PHONY: clean
