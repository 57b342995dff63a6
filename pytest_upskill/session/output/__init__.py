"""Terminal output, report files and JUnit data of a pytest session."""
