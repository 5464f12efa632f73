/* actions.h - everything that a key does in the explorer, one row each.
 *
 * Columns: ID, group, keys, short name for the bar of keys ("": it is not in the bar), text of the help.
 * Keys are separated by spaces; keys that are no characters have the names of keys.c. A key may be in
 * several groups, but only once in the groups that are active at a time: a view has GROUP_ANY and its own
 * groups (view.h). The enum, the lookup, the bar and the help are made from this table.
 */
#ifndef UI_EXPLORE_ACTIONS_H
#define UI_EXPLORE_ACTIONS_H

#define ACTIONS(X) \
	X(QUIT, ANY, "q", "quit", "leave; asks first if there are unsaved edits") \
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
	X(FILTER, ANY, "&", "filter", "show only lanes, units and sTasks with these words in their names") \
	X(FIND_NEXT, ANY, "n", "", "the next match") \
	X(FIND_PREV, ANY, "N", "", "the previous match") \
	X(CANCEL, ANY, "Esc", "", "cancel; or end the first of: help, filter, marks, selection") \
	X(REDRAW, ANY, "C-l", "", "redraw the screen") \
	X(UP, ANY, "Up k", "", "up: another row, a line") \
	X(DOWN, ANY, "Down j", "", "down") \
	X(LEFT, ANY, "Left h", "", "left: the event before, an offset less") \
	X(RIGHT, ANY, "Right l", "", "right: the next event, an offset more") \
	X(PAGE_UP, ANY, "PgUp C-b", "", "a page up; in the timeline half a window back") \
	X(PAGE_DOWN, ANY, "PgDn C-f", "", "a page down; in the timeline half a window forward") \
	X(PANE_DOWN, ANY, "C-d", "", "scroll the details or the summary down") \
	X(PANE_UP, ANY, "C-u", "", "scroll them up") \
	X(HOME, ANY, "Home g", "", "to the beginning; in the timeline to the prologue") \
	X(END, ANY, "End G", "", "to the end") \
	\
	X(ZOOM_IN, SPAN, "+ =", "- zoom", "zoom in around the cursor; so does the mouse wheel") \
	X(ZOOM_OUT, SPAN, "-", "", "zoom out") \
	X(ZOOM_ALL, SPAN, "0", "all", "all that was recorded of the phase") \
	X(ZOOM_LOOP, SPAN, "z", "", "a few iterations of the busiest loop") \
	X(PAN_LEFT, SPAN, "[", "", "back by one initiation interval (II)") \
	X(PAN_RIGHT, SPAN, "]", "", "forward by one initiation interval") \
	X(MEASURED, SPAN, "x", "", "compare with the measured timeline, or not") \
	\
	X(NEXT_WAIT, TIME, "w", "wait", "the next event of this lane that had to wait") \
	X(PREV_WAIT, TIME, "W", "", "the previous one") \
	X(TO_CAUSE, TIME, "Enter", "cause", "to the event that this one waited for") \
	X(BACK, TIME, "Bs", "", "back to the event before Enter") \
	X(CRITICAL, TIME, "c", "critical", "mark the critical path: the chain of causes up to the event") \
	X(RULER, TIME, "r", "ruler", "marks at every initiation interval from the event on, or none") \
	X(MARK, TIME, "m", "mark", "set the second cursor: the distance between both is shown") \
	X(ROWS, TIME, "v", "", "rows by lane, or by sEU") \
	X(PHASE, TIME, "p", "", "the next phase of the program") \
	X(DETAILS, TIME, "d", "", "show the details of the event, or hide them") \
	\
	X(PICK, EDIT, "Space", "pick up", "pick the sTask up: its legal positions are listed with their times") \
	X(EARLIER, EDIT, "<", "> offset", "offset - 1: it works one iteration later") \
	X(LATER, EDIT, ">", "", "offset + 1: it works one iteration earlier") \
	X(MOVE_UP, EDIT, "K", "J order", "one up in its lane's order") \
	X(MOVE_DOWN, EDIT, "J", "", "one down") \
	X(OTHER_LANE, EDIT, "L", "lane", "to the next lane") \
	X(PARTS, EDIT, "P", "", "move all slices of a split sTask alike, or each alone") \
	X(DEEPER, EDIT, "}", "{ ring", "one version more of the values that it writes") \
	X(SHALLOWER, EDIT, "{", "", "one version less") \
	X(WAIT_ADD, EDIT, "a", "", "add a wait for another sTask; asks which") \
	X(WAIT_DROP, EDIT, "D", "", "remove a wait; asks which") \
	X(TILE, EDIT, "t", "tile", "another tile; asks which extents change") \
	X(REPAIR, EDIT, "f", "", "make a plan legal by the changes that come first in y") \
	X(IMPROVE, EDIT, "i", "", "search from this plan; asks what must stay as it is") \
	X(WHY, EDIT, "y", "why", "try changes, and list those that would help, or make the plan legal, to be applied") \
	X(UNDO, EDIT, "u", "undo", "undo the last edit") \
	X(REDO, EDIT, "U C-r", "", "redo it") \
	X(BASE, EDIT, "b", "", "from now on, compare with the plan as it is now") \
	X(SAVE, EDIT, "s", "save", "save the plan as a script; asks where, and before it replaces a file") \
	X(RUN, EDIT, "!", "run", "run it on the device; compare (7) then shows predicted and measured") \
	X(APPLY, CHANGES, "Enter", "apply", "apply the change that is marked, as one edit; a digit marks the one of that number") \
	X(DROP, PICKED, "Enter Space", "put down", "put it at the selected position") \
	\
	X(GO, ITEM, "Enter", "go", "to the sTask in the plan") \
	X(OTHER_SIDE, SIDES, "v", "other", "kernel: role program or source; grid: a map of tiles or rows of EUs") \
	X(SIDE_LEFT, SIDES, "[", "", "scroll left") \
	X(SIDE_RIGHT, SIDES, "]", "", "scroll right") \
	\
	X(STEP_NEXT, STEP, "Space", "step", "to the next issue or completion") \
	X(STEP_BACK, STEP, "Bs b", "back", "to the previous one")

enum action {
	ACT_NONE,
#define X(id, group, keys, brief, help) ACT_##id,
	ACTIONS(X)
#undef X
	ACTION_COUNT
};

enum action_group {
	GROUP_ANY = 1, GROUP_TIME = 2, GROUP_EDIT = 4, GROUP_PICKED = 8, GROUP_STEP = 16,
	GROUP_ITEM = 32, GROUP_SIDES = 64, GROUP_SPAN = 128, GROUP_CHANGES = 256,
};

struct action_row {
	const char *id;			/* "ZOOM_IN" */
	enum action_group group;
	const char *keys, *brief, *help;
};
extern const struct action_row action_rows[ACTION_COUNT];	/* that of ACT_NONE is empty */

/* The action of a key in these groups, or ACT_NONE. Rows further down in the table win, so that a view's own keys
 * hide general ones. */
enum action action_of(int key, unsigned groups);
/* Heading of a group in the help: "anywhere", "in the timeline", ... */
const char *action_group_name(enum action_group g);
/* The first of an action's keys: "?" of "? F1". */
const char *action_key(enum action a, char buf[8]);

#endif
