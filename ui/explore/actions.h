/* actions.h - everything a key does in the explorer: one row each.
 *
 * columns: ID, group, keys, short name for the bar of keys ("" if it has no place there), what
 * the help says. Keys are separated by spaces; those that are no characters are named as in
 * keys.c. The same key may stand in several groups, not twice in one that is taken with it: a
 * view takes ACT_ANY and its own groups (view.h). The enum, the lookup, the bar and the help
 * are made from this table.
 */
#ifndef UI_EXPLORE_ACTIONS_H
#define UI_EXPLORE_ACTIONS_H

#define ACTIONS(X) \
	X(QUIT, ANY, "q", "quit", "leave; asks if edits are unsaved") \
	X(HELP, ANY, "? F1", "help", "all keys; again to go back") \
	X(NEXT_VIEW, ANY, "Tab", "view", "the next view") \
	X(PREV_VIEW, ANY, "BTab", "", "the view before") \
	X(VIEW_1, ANY, "1", "", "timeline") \
	X(VIEW_2, ANY, "2", "", "plan") \
	X(VIEW_3, ANY, "3", "", "graph") \
	X(VIEW_4, ANY, "4", "", "kernel") \
	X(VIEW_5, ANY, "5", "", "grid") \
	X(VIEW_6, ANY, "6", "", "step by step") \
	X(VIEW_7, ANY, "7", "", "compare") \
	X(VIEW_8, ANY, "8", "", "problems") \
	X(SEARCH, ANY, "/", "find", "find an sTask, or text, by part of its name") \
	X(FIND_NEXT, ANY, "n", "", "the next that is like it") \
	X(FIND_PREV, ANY, "N", "", "the one before") \
	X(CANCEL, ANY, "Esc", "", "put down, unmark, leave the help") \
	X(REDRAW, ANY, "C-l", "", "draw all anew") \
	X(UP, ANY, "Up k", "", "up: another row, a line") \
	X(DOWN, ANY, "Down j", "", "down") \
	X(LEFT, ANY, "Left h", "", "left: the event before, an offset less") \
	X(RIGHT, ANY, "Right l", "", "right: the next event, an offset more") \
	X(PAGE_UP, ANY, "PgUp C-b", "", "a page up, or half a window back in time") \
	X(PAGE_DOWN, ANY, "PgDn C-f", "", "a page down, or half a window on") \
	X(HOME, ANY, "Home g", "", "to the beginning") \
	X(END, ANY, "End G", "", "to the end") \
	\
	X(ZOOM_IN, SPAN, "+ =", "- zoom", "closer, around the cursor; the wheel does it too") \
	X(ZOOM_OUT, SPAN, "-", "", "farther away") \
	X(ZOOM_ALL, SPAN, "0", "all", "all that was kept of the phase") \
	X(ZOOM_LOOP, SPAN, "z", "", "so close that an iteration of the busiest loop can be read") \
	X(PAN_LEFT, SPAN, "[", "", "an interval (II) back") \
	X(PAN_RIGHT, SPAN, "]", "", "an interval on") \
	X(MEASURED, SPAN, "x", "", "the measured timeline beside the predicted one, or not") \
	\
	X(NEXT_WAIT, TIME, "w", "wait", "the next event of this lane that was held up") \
	X(PREV_WAIT, TIME, "W", "", "the one before") \
	X(TO_CAUSE, TIME, "Enter", "cause", "to what the event waited for") \
	X(BACK, TIME, "Bs", "", "back to where that was asked") \
	X(CRITICAL, TIME, "c", "critical", "mark the chain of causes that leads to the event, or not") \
	X(RULER, TIME, "r", "ruler", "marks at each interval from the event on, or none") \
	X(MARK, TIME, "m", "mark", "the second cursor here: the span between both is told") \
	X(ROWS, TIME, "v", "", "rows by lane, or by sEU") \
	X(PHASE, TIME, "p", "", "the next phase of the program") \
	X(DETAILS, TIME, "d", "", "how much of the details is shown") \
	\
	X(PICK, EDIT, "Space", "pick up", "pick the sTask up; its legal places are marked, with their times") \
	X(EARLIER, EDIT, "<", "> offset", "its offset one less: an iteration later") \
	X(LATER, EDIT, ">", "", "its offset one more: an iteration earlier") \
	X(MOVE_UP, EDIT, "K", "J order", "before the one above in its lane's order") \
	X(MOVE_DOWN, EDIT, "J", "", "behind the one below") \
	X(OTHER_LANE, EDIT, "L", "lane", "to the next lane that may have it") \
	X(PARTS, EDIT, "P", "", "move all parts of a split sTask likewise, or each alone") \
	X(DEEPER, EDIT, "}", "{ ring", "one version more of what it makes") \
	X(SHALLOWER, EDIT, "{", "", "one version less") \
	X(WAIT_ADD, EDIT, "a", "", "let it wait for another sTask, which is asked for") \
	X(WAIT_DROP, EDIT, "D", "", "let it no longer wait for one, which is asked for") \
	X(TILE, EDIT, "t", "tile", "other tile extents, which are asked for") \
	X(REPAIR, EDIT, "f", "", "try to repair what is not legal") \
	X(IMPROVE, EDIT, "i", "", "search from this plan; asked for is what is to stay as it is") \
	X(UNDO, EDIT, "u", "undo", "take the last edit back") \
	X(REDO, EDIT, "U C-r", "", "and do it again") \
	X(BASE, EDIT, "b", "", "compare with the plan as it is now from here on") \
	X(SAVE, EDIT, "s", "save", "save the plan as a script") \
	X(RUN, EDIT, "!", "run", "run it on the device, and see predicted and measured") \
	X(DROP, PICKED, "Enter Space", "put down", "put it where it is shown") \
	\
	X(GO, ITEM, "Enter", "go", "to the sTask in the plan") \
	X(OTHER_SIDE, SIDES, "v", "other", "the kernel's role program, or its source; tiles by place, or by EU") \
	X(SIDE_LEFT, SIDES, "[", "", "what is cut off on the left") \
	X(SIDE_RIGHT, SIDES, "]", "", "what is cut off on the right") \
	\
	X(STEP_NEXT, STEP, "Space", "step", "the next issue or completion") \
	X(STEP_BACK, STEP, "Bs b", "back", "the one before")

enum action {
	ACT_NONE,
#define X(id, group, keys, brief, help) ACT_##id,
	ACTIONS(X)
#undef X
	ACTION_COUNT
};

enum action_group {
	GROUP_ANY = 1, GROUP_TIME = 2, GROUP_EDIT = 4, GROUP_PICKED = 8, GROUP_STEP = 16,
	GROUP_ITEM = 32, GROUP_SIDES = 64, GROUP_SPAN = 128,
};

struct action_row {
	const char *id;			/* "ZOOM_IN" */
	enum action_group group;
	const char *keys, *brief, *help;
};
extern const struct action_row action_rows[ACTION_COUNT];	/* that of ACT_NONE is empty */

/* What a key does among these groups; later groups in the table come first, so that what is
 * particular hides what is general. ACT_NONE. */
enum action action_of(int key, unsigned groups);
/* "anywhere", "in the timeline" ... */
const char *action_group_name(enum action_group g);
/* The first of an action's keys: "F1" of "F1 ?". */
const char *action_key(enum action a, char buf[8]);

#endif
