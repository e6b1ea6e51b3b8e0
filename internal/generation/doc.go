// Package generation judges the tokens that a model generates, by logits that are at hand: those of the
// reference and those of a candidate that was forced along the reference's greedy text, position by
// position. It runs no engine and opens no file.
//
// [Decide] is the rule for one token: the same, a tie within the noise, or diverged. [Compare] says what
// two rows of logits say at one position, and [Judge] what all positions come to.
package generation
