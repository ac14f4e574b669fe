import WormholeCommandLine

/// The `wormhole` command.
@main enum Command {
  static func main() { Table.wormhole.main() }
}
