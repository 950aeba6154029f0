package resume

import (
	"time"

	"github.com/replywake/replywake/client"
)

// How a mail row came to its workflow.
const (
	matchedByThread = "thread" // its thread is the workflow's
	matchedBySender = "sender" // its From is the counterparty of one workflow only
	matchedByPerson = "person" // somebody bound it
	matchedBySend   = "send"   // it is about a send of the workflow
	matchedByEngine = "engine" // the engine tells the step something
	matchedBySignal = "signal" // the user's own input
)

// Proof says what ties a reply to the workflow. From can be forged, so no
// proof says who wrote.
type Proof string

// The proofs, strongest first.
const (
	ProofThreadAndSender Proof = "thread and counterparty" // it stands in our thread, and From is the counterparty
	ProofThread          Proof = "thread"                  // it stands in our thread, From is somebody else
	ProofSender          Proof = "sender"                  // a new thread; From is all we have
	ProofPerson          Proof = "person"                  // a person bound it
)

// Why a mail row is before a person.
const (
	ReasonNoCandidate       = "no_candidate"       // no workflow could be meant
	ReasonSeveralCandidates = "several_candidates" // more than one could
	ReasonLateReply         = "late_reply"         // the workflow of its thread is over
	ReasonPolicy            = "policy"             // the Policy asks for a person
	ReasonLoop              = "loop"               // the workflow answers too much mail an hour
	ReasonUnreadable        = "unreadable"         // the message could not be read for a day
	ReasonConflict          = "conflict"           // its thread and its binding contradict each other
)

// InputKind says what an input is.
type InputKind string

// The kinds of inputs.
const (
	InputReply     InputKind = "reply"      // a message
	InputBounce    InputKind = "bounce"     // a message of ours did not arrive, see Input.Delivery; Suspected by its look only
	InputRejected  InputKind = "rejected"   // a person at the provider refused a held send
	InputSendError InputKind = "send_error" // a planned send will not happen, see Input.Reason
	InputSignal    InputKind = "signal"     // your own, see Engine.Signal
)

// Input is one thing that arrived for a workflow.
type Input struct {
	Kind    InputKind
	EventID string
	At      time.Time // when it was received
	Step    int64     // sends begun when it arrived: with a lower number than Run.Step it cannot answer the newest

	Message client.Message // of a reply or a suspected bounce
	Body    client.Body

	MatchedBy string // thread, sender, person, send, engine, signal
	Proof     Proof  // of a reply

	Delivery  client.Delivery // of a bounce
	Suspected bool            // a bounce by its sender's name only

	Reason string // of a send error
	Signal string // the signal's ID
	Data   []byte // the signal's
}

// Workflow is a workflow as a person sees it.
type Workflow struct {
	ID, Run, Kind string
	Inbox         string
	Counterparty  client.Untrusted
	Status        Status
	Step          int64 // sends planned
	Pending       int64 // inputs not consumed yet
	Due           time.Time
	Deadline      time.Time
	Timeouts      int64
	Attempts      int64 // failed runs in a row
	Error         string
	State         []byte
	Created       time.Time
	Updated       time.Time
	Finished      time.Time
}

// WaitingFor says in words what the workflow waits for.
func (w Workflow) WaitingFor() string {
	switch {
	case w.Status.Terminal():
		return "nothing"
	case w.Status == StatusWaiting && w.Deadline.IsZero():
		return "a reply"
	case w.Status == StatusWaiting:
		return "a reply, until " + w.Deadline.UTC().Format(time.RFC3339)
	case w.Status == StatusSending:
		return "the provider to accept its mail"
	case w.Status == StatusAwaitingApproval:
		return "approval of its mail at the provider"
	case w.Status == StatusNeedsReview:
		return "a person: " + w.Error
	case w.Status == StatusRunning:
		return "its step"
	case w.Due.After(w.Updated): // a bind is held, or the step failed
		return "a worker, from " + w.Due.UTC().Format(time.RFC3339)
	}
	return "a worker"
}

func (w *workflowRow) view() Workflow {
	return Workflow{
		ID: w.id, Run: w.run, Kind: w.kind, Inbox: w.inbox, Counterparty: client.NewUntrusted(w.counterparty), Status: w.Status, Step: w.Step,
		Pending: w.Arrived - w.Consumed, Due: w.Due, Deadline: w.Deadline, Timeouts: w.Timeouts, Attempts: w.Attempts, Error: w.Error,
		State: w.saved, Created: w.created, Updated: w.updated, Finished: w.finished,
	}
}

// Moment is a line of a workflow's timeline.
type Moment struct {
	At     time.Time
	What   string // started, planned, sent, held, thread, input, step, waiting, review, done …
	Step   int64
	Detail string // IDs and reasons, no stranger's text
}

// Candidate is a workflow that a mail may belong to.
type Candidate struct {
	Workflow string
	Status   Status
	Step     int64 // its last mail that left or, if the item is mail of ours, is held; with subject and time; 0 if none
	Subject  string
	SentAt   time.Time
}

// Item is mail that a person must place.
type Item struct {
	EventID, Inbox, Thread, Message string
	Kind                            string
	Reason                          string
	Candidates                      []Candidate
	At                              time.Time
}
