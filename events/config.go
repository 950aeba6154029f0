package events

import (
	"errors"
	"log/slog"
)

// ErrConfig: an argument of [NewHandler] or [NewSweeper] cannot be right.
var ErrConfig = errors.New("events: configuration")

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
