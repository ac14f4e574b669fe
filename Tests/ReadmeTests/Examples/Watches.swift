import WatchConnectivity

/// Tells the watch how many seats are left, whenever its app runs the next time.
func tell(_ seats: Int) throws {
  try WCSession.default.updateApplicationContext(["seats left": seats])
}
