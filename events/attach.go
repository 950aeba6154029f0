package events

import "context"

// Attach stores where the stream begins, if nothing is stored yet, and is done
// otherwise. Run and Sweep do it first. Call it, or wait for
// [Sweeper.Attached], before the program opens a door or sends: a reply to what
// it sends must not count as history.
//
// Until its one commit nothing is stored, so after a failure it begins again.
func (s *Sweeper) Attach(ctx context.Context) error {
	pos, err := s.position(ctx)
	if err != nil || pos.Known {
		return err
	}
	head, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.receiver.Attach(ctx, head); err != nil {
		return storeError("attach", err)
	}
	s.status.attach()
	return nil
}

// Attached is closed once the stream has a position.
func (s *Sweeper) Attached() <-chan struct{} { return s.status.attached }

// begin finds the position that Config.Start means.
func (s *Sweeper) begin(ctx context.Context) (Cursor, error) {
	if s.config.Start == FromBeginning {
		return 0, nil
	}
	if !s.source.Sequenced() {
		return 0, s.settleHistory(ctx)
	}
	head, err := s.source.Head(ctx)
	if err != nil {
		return 0, sourceError("find the head", err)
	}
	return head, nil
}

// settleHistory settles what a source without sequences shows, unseen. Another
// process may attach meanwhile, and what comes after that is not history. So
// the position is looked at between reading a page and settling it: if there
// is none yet, the page is older than any attaching.
func (s *Sweeper) settleHistory(ctx context.Context) error {
	for page, err := range Pages(ctx, s.source, 0) {
		if err != nil {
			return sourceError("read history", err)
		}
		pos, err := s.position(ctx)
		if err != nil || pos.Known {
			return err
		}
		if err := s.settle(ctx, page.Events); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweeper) settle(ctx context.Context, events []Event) error {
	settler, ok := s.source.(Settler)
	if !ok {
		return nil
	}
	if err := settler.Settle(ctx, events); err != nil {
		return sourceError("settle", err)
	}
	return nil
}

func (s *Sweeper) position(ctx context.Context) (Position, error) {
	pos, err := s.receiver.Position(ctx)
	if err != nil {
		return Position{}, storeError("position", err)
	}
	s.status.position(pos)
	return pos, nil
}
