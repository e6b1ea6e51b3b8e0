// Package rebuild finds out how the reference made its tensors, and makes the candidate's of them.
//
// A [Graph] has the values around a scene's target: the reference's tensors, each under all the
// names by which it was recorded. An [Op] is how one of them is made of earlier ones: a linear
// layer, a norm, a sum, attention. It is believed if it makes the golden tensor of the golden
// inputs: that is the control of every prediction made with it. An [Evaluation] calculates with the
// candidate's tensors where it recorded them, with the golden ones where they must be right, and
// with ops in between. A [Fault] is an op done wrong; [Graph.Predict] tries faults at each op
// between what the candidate recorded and the target.
package rebuild
