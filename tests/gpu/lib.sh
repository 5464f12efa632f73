# lib.sh - for the tests of this folder, which need a device.
#
# Without one they say why and pass; with MILLRACE_NEED_DEVICE=1 they fail instead.
. tests/lib.sh

nodevice=$("$MILLRACE" -e 'local found, why = mr.attached() if not found then print(why) end' 2>&1)
if [ "$nodevice" ]; then
	[ "$MILLRACE_NEED_DEVICE" = 1 ] || t_skip_all "$nodevice"
	t_is 'a device is attached' "$nodevice" ''
	t_done
fi
