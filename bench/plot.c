/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plot: rate against frame size as an SVG, one line per system.
 *
 * Written by hand, because a picture of a few lines needs no library. Only rows of one state of
 * the machine can stand in one picture: the one with most rows is taken, and named. Sizes are
 * evenly spaced steps in the order of the results; the rate starts at zero.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>

#define WIDTH  760
#define HEIGHT 440
#define LEFT   60
#define RIGHT  150
#define TOP    40
#define BOTTOM 50
#define GRID   5

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
				      "#e69f00", "#56b4e9", "#000000", "#999999"};

struct plot {
	FILE *out;
	const char *mode;
	double top; /* rate at the upper edge */
	unsigned int nsizes;
	const json_t *size[SIZES_MAX];
	unsigned int nsystems;
	const char *system[SYSTEMS_MAX];
};

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static double rate_of(const json_t *row)
{
	return json_number_value(json_object_get(row, "mpps"));
}

static bool in_plot(const struct plot *p, const json_t *row)
{
	return strcmp(text_of(row, "mode"), p->mode) == 0 && rate_of(row) > 0;
}

/* The state with most rows. */
static const char *common_mode(const json_t *results)
{
	unsigned int count[MODES] = {0}, best = 0;
	const json_t *row;
	size_t i;

	json_array_foreach(results, i, row)
	{
		for (unsigned int m = 0; m < MODES; m++)
			count[m] += strcmp(text_of(row, "mode"), mode_name(m)) == 0;
	}
	for (unsigned int m = 1; m < MODES; m++)
		best = count[m] > count[best] ? m : best;
	return mode_name(best);
}

static unsigned int size_index(struct plot *p, const json_t *size)
{
	unsigned int i;

	for (i = 0; i < p->nsizes && !json_equal(p->size[i], size); i++)
		;
	if (i == p->nsizes && i < SIZES_MAX)
		p->size[p->nsizes++] = size;
	return i;
}

static unsigned int system_index(struct plot *p, const char *name)
{
	unsigned int i;

	for (i = 0; i < p->nsystems && strcmp(p->system[i], name) != 0; i++)
		;
	if (i == p->nsystems && i < SYSTEMS_MAX)
		p->system[p->nsystems++] = name;
	return i;
}

static void collect(struct plot *p, const json_t *results)
{
	const json_t *row;
	size_t i;

	json_array_foreach(results, i, row)
	{
		if (!in_plot(p, row))
			continue;
		size_index(p, json_object_get(row, "size"));
		system_index(p, text_of(row, "system"));
		p->top = MAX(p->top, rate_of(row) * 1.05);
	}
}

static double x_of(const struct plot *p, unsigned int size)
{
	const double step = (double)(WIDTH - LEFT - RIGHT) / MAX(1, p->nsizes);

	return LEFT + step * (size + 0.5);
}

static double y_of(const struct plot *p, double rate)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / p->top;
}

static void draw_axes(const struct plot *p)
{
	fprintf(p->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"22\">Mpps by frame size (bytes), machine: %s</text>\n",
		WIDTH, HEIGHT, LEFT, p->mode);
	for (unsigned int i = 0; i <= GRID; i++) {
		const double rate = p->top * i / GRID, y = y_of(p, rate);

		fprintf(p->out,
			"<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n",
			LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, rate);
	}
	for (unsigned int i = 0; i < p->nsizes; i++) {
		fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x_of(p, i),
			HEIGHT - BOTTOM + 20);
		if (json_is_string(p->size[i]))
			fprintf(p->out, "%s", json_string_value(p->size[i]));
		else
			fprintf(p->out, "%d", (int)json_integer_value(p->size[i]));
		fprintf(p->out, "</text>\n");
	}
}

/* Name of the system at the right, its points, and the line through them. */
static void draw_system(struct plot *p, const json_t *results, unsigned int system)
{
	const char *colour = colours[system % ARRAY_LEN(colours)];
	char command = 'M';
	const json_t *row;
	size_t i;

	fprintf(p->out, "<text x=\"%d\" y=\"%u\" fill=\"%s\">%s</text>\n<path d=\"",
		WIDTH - RIGHT + 12, TOP + 20 * (system + 1), colour, p->system[system]);
	json_array_foreach(results, i, row)
	{
		if (!in_plot(p, row) || strcmp(text_of(row, "system"), p->system[system]) != 0)
			continue;
		fprintf(p->out, "%c%.1f %.1f", command,
			x_of(p, size_index(p, json_object_get(row, "size"))),
			y_of(p, rate_of(row)));
		command = 'L';
	}
	fprintf(p->out,
		"\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" "
		"stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n",
		colour);
}

int plot_write(const char *path, const json_t *results)
{
	struct plot p = {.mode = common_mode(results)};
	int err;

	collect(&p, results);
	if (p.nsystems == 0) {
		fprintf(stderr, "xvs-bench: no rates to plot\n");
		return -ENODATA;
	}
	p.out = fopen(path, "we");
	if (!p.out)
		return -errno;
	draw_axes(&p);
	for (unsigned int i = 0; i < p.nsystems; i++)
		draw_system(&p, results, i);
	fprintf(p.out, "</svg>\n");
	err = ferror(p.out) ? -EIO : 0;
	return fclose(p.out) ? -errno : err;
}
