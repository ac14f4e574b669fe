internal import WormholeContainerStorage

/// Runs `body`, and gives its error, which no caller receives, to the log.
func reporting(
  to log: (WormholeError) -> Void, _ body: () throws(WormholeError) -> Void
) {
  do throws(WormholeError) {
    try body()
  } catch {
    log(error)
  }
}
