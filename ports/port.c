/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all kinds of port share: the rule for names, and the call that takes changed queue
 * states to the workers.
 *
 * Everything here runs on the control thread. A port does not know the switch: it only holds
 * the function that vswitch_add_port() installed. Before that, and in unit tests of a kind,
 * there is none, and nobody else can be using the queues, so that there is nothing to wait for.
 *
 * Names go into file names, JSON keys and command lines, so that the alphabet is small: no
 * blanks, no '/', nothing that a shell or an option parser would read its own way. Names that
 * begin with '.' or '-' are refused for the same reason.
 */
#include "ports/port.h"

static bool name_char_valid(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

bool port_name_valid(const char *name)
{
	unsigned int n = 0;

	if (name[0] == '.' || name[0] == '-')
		return false;
	while (name[n]) {
		if (n == PORT_NAME_MAX || !name_char_valid(name[n]))
			return false;
		n++;
	}
	return n > 0;
}

void port_republish(struct port *p)
{
	if (p->republish)
		p->republish(p->republish_ctx);
}
