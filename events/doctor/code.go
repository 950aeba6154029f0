package doctor

// Level is how much a finding matters.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing, nothing is lost
	Warning Level = "warning" // something is or will be lost, or stands still
)

// Code names a finding. It does not change from one version to the next, so a
// program may go by it; docs/operations.md has all of them.
type Code string

// The codes of what is not as it should be, or not there.
const (
	StoreUnavailable  Code = "store_unavailable"
	SweepFailing      Code = "sweep_failing"
	SweepBehind       Code = "sweep_behind"
	NoSweeper         Code = "no_sweeper"
	EventsLost        Code = "events_lost"
	CredentialChanged Code = "credential_changed" //nolint:gosec // it is none

	CursorSuspect Code = "cursor_suspect"
	SweepsEmpty   Code = "sweeps_empty"
	InboxUnswept  Code = "inbox_unswept"
	PushSilent    Code = "push_silent"

	EventsFailed         Code = "events_failed"
	EventsParked         Code = "events_parked"
	DeliveriesUnreadable Code = "deliveries_unreadable"

	NoPushDoor      Code = "no_push_door"
	NothingVerified Code = "nothing_verified"
	SecretStillUsed Code = "secret_still_used"
	SecretUnused    Code = "secret_unused"

	NoListing           Code = "no_listing"
	ListingRefused      Code = "listing_refused"
	ProviderUnavailable Code = "provider_unavailable"
	NoEndpoint          Code = "no_endpoint"
	EndpointDisabled    Code = "endpoint_disabled"
	DeliveriesGivenUp   Code = "deliveries_given_up"
	DeliveriesCanceled  Code = "deliveries_canceled"

	ClockSkew    Code = "clock_skew"
	ClockUnknown Code = "clock_unknown"
)

// The codes of parts that are well.
const (
	SweepOK      Code = "sweep"
	DoorsOK      Code = "doors"
	HandlingOK   Code = "handling"
	SecretsOK    Code = "secrets"
	DeliveriesOK Code = "deliveries"
	ClockOK      Code = "clock"
)
