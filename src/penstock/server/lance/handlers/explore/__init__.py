"""Operations for people who look around: what there is, how it hangs together, how it came."""
