package actors
