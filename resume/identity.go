package resume

import (
	"context"
	"errors"
	"fmt"

	"github.com/replywake/replywake/internal/sqldb"
)

// A name belongs to one stream: an engine would run another stream's workflows
// and send their mail through its own provider.

// take gives the engine's name to its stream, unless another has it. It asks
// the database once an engine.
func (e *Engine) take(ctx context.Context) error {
	if e.taken.Load() {
		return nil
	}
	return e.db.Tx(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, e.st.EngineTake, e.cfg.Name, e.stream); err != nil {
			return err
		}
		return e.compare(ctx, tx)
	})
}

// compare refuses a name that is another stream's, in the caller's transaction.
func (e *Engine) compare(ctx context.Context, tx sqldb.Tx) error {
	if e.taken.Load() {
		return nil
	}
	var stream string
	err := sqldb.One(ctx, tx, e.st.EngineStream, []any{e.cfg.Name}, &stream)
	switch {
	case errors.Is(err, sqldb.ErrNoRows): // nobody has it yet
		return nil
	case err != nil:
		return err
	case stream != e.stream:
		return fmt.Errorf("%w: the engine name %q belongs to the stream %q, the engine's Mail is %q", ErrStream, e.cfg.Name, stream, e.stream)
	}
	e.taken.Store(true)
	return nil
}
