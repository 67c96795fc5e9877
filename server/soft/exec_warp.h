/* SPDX-License-Identifier: Apache-2.0 */
/* What the x and y fields of votes and reductions mean.
 *
 * Thread rule: constants only. */
#pragma once

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };
enum { REDUX_ABS = 256, REDUX_NAN = 512 }; /* in y, beside the type */
