// SPDX-License-Identifier: GPL-2.0-or-later
/* Control groups: the cpu controller's own callbacks and files, with as much of a cgroup around them as it reads. */

struct fl_group {
	struct cgroup_subsys_state *css;
	struct fl_group *parent;
	char path[256];
};

/* A cgroup, and how many CPUs its cpuset lets its tasks have (cpuset.cpus.effective); 0: nobody has told. */
struct group_cgroup {
	int nr_cpus;
	struct cgroup cgroup;
};

extern struct cgroup_subsys cpu_cgrp_subsys;
static struct cgroup_subsys_state *written;

struct cgroup_subsys_state *of_css(struct kernfs_open_file *file)
{
	return written;
}

static struct cgroup_subsys_state *css_of(struct fl_group *group)
{
	return group ? group->css : &root_task_group.css;
}

static struct task_group *tg_of(struct fl_group *group)
{
	return container_of(css_of(group), struct task_group, css);
}

/* As init_and_link_css() and online_css(). */
static struct cgroup_subsys_state *make_css(struct cgroup_subsys_state *parent, const char *path)
{
	struct cgroup_subsys_state *css = cpu_cgrp_subsys.css_alloc(parent);
	struct group_cgroup *room = zalloc(sizeof(*room) + 128);
	struct cgroup *cgroup = &room->cgroup;

	if (IS_ERR(css))
		fl_die("css_alloc() fails", path);
	css->parent = parent;
	css->ss = &cpu_cgrp_subsys;
	css->cgroup = cgroup;
	css->flags |= CSS_ONLINE;
	cgroup->kn = (void *)path;               /* as kernfs_path_from_node() of plain.c prints it */
	INIT_LIST_HEAD(&css->children);
	INIT_LIST_HEAD(&css->sibling);
	if (parent)
		list_add_tail_rcu(&css->sibling, &parent->children);
	if (cpu_cgrp_subsys.css_online && cpu_cgrp_subsys.css_online(css))
		fl_die("css_online() fails", path);
	return css;
}

static long make_group(long parent_, long name_)
{
	struct fl_group *parent = (void *)parent_, *group = zalloc(sizeof(*group));

	group->parent = parent;
	snprintf(group->path, sizeof(group->path), "%s/%s", parent ? parent->path : "", (const char *)name_);
	group->css = make_css(css_of(parent), group->path);
	return (long)group;
}

fl_entry fl_group *fl_new_group(fl_group *parent, const char *name)
{
	return (void *)on_task_whole(make_group, (long)parent, (long)name);
}

/* ---- files ---- */
struct group_file {
	struct fl_group *group;
	const char *file, *value;
};

static struct cftype *file_named(const char *name)
{
	struct cftype *file;

	for (file = cpu_cgrp_subsys.dfl_cftypes; file->name[0]; file++)
		if (!strcmp(file->name, name))
			return file;
	return NULL;
}

static long write_file(long asked_, long unused)
{
	struct group_file *asked = (void *)asked_;
	struct cgroup_subsys_state *css = css_of(asked->group);
	struct cftype *file = file_named(asked->file);
	char text[128];
	long number;
	int wrong;

	/* Not there means: no group has it. */
	if (!file)
		return -ENOENT;
	if (file->flags & CFTYPE_NOT_ON_ROOT && !asked->group)
		return -EPERM;
	strscpy(text, asked->value, sizeof(text));
	if (file->write) {
		written = css;
		wrong = file->write(NULL, text, strlen(text), 0);
		return wrong < 0 ? wrong : 0;
	}
	wrong = kstrtol(text, 10, &number);
	if (wrong)
		return wrong;
	if (file->write_u64)
		return number < 0 ? -EINVAL : file->write_u64(css, file, number);
	return file->write_s64 ? file->write_s64(css, file, number) : -EINVAL;
}

fl_entry int fl_group_write(fl_group *group, const char *file, const char *value)
{
	struct group_file asked = { group, file, value };

	return on_task_whole(write_file, (long)&asked, 0);
}

#ifdef CONFIG_CPUSETS
DEFINE_STATIC_KEY_FALSE(cpusets_enabled_key);

/* Trees from 7.3 on ask for it. */
int cpuset_num_cpus(struct cgroup *cgroup)
{
	int told = container_of(cgroup, struct group_cgroup, cgroup)->nr_cpus;

	return told ? told : num_online_cpus();
}
#endif

fl_entry void fl_group_cpus(fl_group *group, int nr_cpus)
{
#ifdef CONFIG_CPUSETS
	container_of(css_of(group)->cgroup, struct group_cgroup, cgroup)->nr_cpus = nr_cpus;
	atomic_set(&cpusets_enabled_key.key.enabled, 1);
#endif
}

/* Later trees begin a group's periods at a chance time; this one is the loader's. */
fl_entry int fl_group_phase(fl_group *group, fl_u64 offset)
{
#if defined(CONFIG_CFS_BANDWIDTH) && HAVE_RANDOM_PERIOD
	struct hrtimer *timer = &tg_of(group)->cfs_bandwidth.period_timer;

	if (!hrtimer_active(timer))
		hrtimer_set_expires(timer, ns_to_ktime(offset));
	return 0;
#else
	return FL_UNKNOWN;
#endif
}

/* ---- the tasks' side ---- */

/* Tasks of a group share one. */
static struct css_set *cset_of(struct cgroup_subsys_state *css)
{
	static struct css_set **sets;
	static unsigned int nr_sets, room;
	struct css_set *set;
	unsigned int i;

	for (i = nr_sets; i--; )
		if (sets[i]->subsys[cpu_cgrp_id] == css)
			return sets[i];
	if (nr_sets == room) {
		struct css_set **more = zalloc((room + 256) * sizeof(*more));

		if (room)
			memcpy(more, sets, room * sizeof(*more));
		sets = more;
		room += 256;
	}
	set = zalloc(sizeof(*set));
	set->subsys[cpu_cgrp_id] = css;
	set->dfl_cgrp = zalloc(sizeof(struct cgroup) + 256);     /* without a parent: nobody's time is summed up */
	sets[nr_sets++] = set;
	return set;
}

static long move_task(long p_, long group)
{
	struct task_struct *p = (void *)p_;

	p->cgroups = cset_of(css_of((void *)group));
	/* The second argument, for_autogroup, came later. */
	((void (*)(struct task_struct *, long))sched_move_task)(p, 0);
	return 0;
}

fl_entry int fl_move(fl_task *p, fl_group *group)
{
	return on_task_whole(move_task, (long)p, (long)group);
}

/* ---- walks, as kernel/cgroup/cgroup.c ---- */

/* Over the tasks of a group; one walk at a time. */
static struct task_struct *walked;

void css_task_iter_start(struct cgroup_subsys_state *css, unsigned int flags, struct css_task_iter *it)
{
	it->ss = (void *)css;
	walked = &init_task;
}

struct task_struct *css_task_iter_next(struct css_task_iter *it)
{
	struct task_struct *p = walked;

	while ((p = next_of_all(p))) {
		if (p->cgroups->subsys[cpu_cgrp_id] == (void *)it->ss && p->exit_state != EXIT_DEAD)
			return walked = p;
	}
	return walked = NULL;
}

void css_task_iter_end(struct css_task_iter *it) { }

struct cgroup_subsys_state *css_next_child(struct cgroup_subsys_state *pos, struct cgroup_subsys_state *parent)
{
	struct list_head *next = pos ? pos->sibling.next : parent->children.next;

	return next == &parent->children ? NULL : list_entry(next, struct cgroup_subsys_state, sibling);
}

struct cgroup_subsys_state *css_next_descendant_pre(struct cgroup_subsys_state *pos, struct cgroup_subsys_state *root)
{
	struct cgroup_subsys_state *next;

	if (!pos)
		return root;
	next = css_next_child(NULL, pos);
	if (next)
		return next;
	for (; pos != root; pos = pos->parent) {
		next = css_next_child(pos, pos->parent);
		if (next)
			return next;
	}
	return NULL;
}

struct cgroup_subsys_state *css_rightmost_descendant(struct cgroup_subsys_state *pos)
{
	while (!list_empty(&pos->children))
		pos = list_last_entry(&pos->children, struct cgroup_subsys_state, sibling);
	return pos;
}
