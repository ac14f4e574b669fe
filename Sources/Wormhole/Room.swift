/// A room.
public enum WormholeRoom {}
