package enum SessionLedger {}
