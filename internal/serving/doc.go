// Package serving judges an OpenAI-compatible server by the goldens of a fixture.
//
// [Run] asks each case the way it is written, token ids as ids, a prompt as text, messages by chat:
// one at a time, then from the middle of its own text, then all at once. The tokens, the text and
// the log-probabilities of each answer are judged by the reference's. Where all is right, it asks
// further: as streams, in crowds, with stops, settings and draws. Where something is wrong, the
// server is asked further, and a cause is named only if the answers show it: a request that is wrong
// in a crowd and right alone is a fault of concurrency, and a prompt that is right as ids and wrong
// as text is one of the tokenizer. No layer is ever accused: that is what goldens of tensors are for.
//
// [Start] runs the server itself, as a child that cannot outlive this process.
//
//	server, err := serving.Start(ctx, serving.Program{Command: []string{"max", "serve", …}})
//	defer server.Stop()
//	result, err := serving.Run(ctx, references, serving.Options{URL: server.URL})
//
// No request is sent twice without a word. One that gets no answer that can be judged (the server
// died, refused, was late, wrote HTML) makes the whole result an error: nothing is guessed from the
// rest. echo is never asked for: together with logprobs it ends MAX's server.
package serving
