"""Operations that keep tables small."""
