package efatest

import "fmt"

type approval struct {
	send    *send
	decided bool
}

// HoldSends makes new sends wait for a person where hold is true: they answer
// approval_required. Nil ends it. See [All].
func (s *Server) HoldSends(hold func(Send) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

// All is every send, for [Server.HoldSends] and [Server.Echo].
func All(Send) bool { return true }

// draft holds d for a person. It is called with mu held.
func (s *Server) draft(d *send) {
	d.DraftID, d.ApprovalID = s.newID("drf"), s.newID("apr")
	s.approvals[d.ApprovalID] = &approval{send: d}
	d.answer = ok(0, object{"result": "approval_required", "draft_id": d.DraftID, "approval_id": d.ApprovalID}).body
	s.emit(d.approvalEvent(ApprovalRequested), notice{})
}

func (d *send) approvalEvent(typ string) Event {
	return Event{Type: typ, Inbox: d.Inbox, Data: object{
		"approval_id": d.ApprovalID, "draft_id": d.DraftID, "inbox_id": d.Inbox,
	}}
}

// Approve lets a held send go. Its message.queued names message, thread and
// inbox and nothing that leads back to the approval; a replay of its key still
// answers approval_required. An unknown or decided approval is an error.
func (s *Server) Approve(approvalID string) (Send, error) {
	s.mu.Lock()
	a, err := s.decide(approvalID)
	if err != nil {
		s.mu.Unlock()
		return Send{}, err
	}
	s.outbound(a.send)
	out := a.send.export()
	s.mu.Unlock()
	s.left(out)
	return out, nil
}

// Reject drops a held send and emits approval.rejected.
func (s *Server) Reject(approvalID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.decide(approvalID)
	if err != nil {
		return err
	}
	a.send.Rejected = true
	s.emit(a.send.approvalEvent(ApprovalRejected), notice{})
	return nil
}

// decide is called with mu held.
func (s *Server) decide(approvalID string) (*approval, error) {
	a := s.approvals[approvalID]
	if a == nil {
		return nil, fmt.Errorf("efatest: no approval %s", approvalID)
	}
	if a.decided {
		return nil, fmt.Errorf("efatest: approval %s is already decided", approvalID)
	}
	a.decided = true
	return a, nil
}
