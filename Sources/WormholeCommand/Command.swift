import WormholeCommandLine
import WormholeContainerStorage

/// The `wormhole` command.
@main enum Command {
  static func main() {
    // Watchers have been notified by now: no watcher waits for the disk.
    Table.wormhole.main { Container.finishSaving() }
  }
}
