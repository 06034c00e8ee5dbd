"""Operations on functions, and columns that they fill."""
