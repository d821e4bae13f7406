//! Aligned plain-text tables.

/// A table: a head and rows of as many cells.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(head: &[&'static str]) -> Table {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().map(|cell| if cell.is_empty() { "-".into() } else { cell }).collect();
        debug_assert_eq!(cells.len(), self.head.len(), "{:?}", self.head);
        self.rows.push(cells);
    }
}

impl std::fmt::Display for Table {
    /// Columns of numbers to the right, others to the left, two blanks between.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let columns: Vec<(usize, bool)> = (0..self.head.len())
            .map(|column| {
                let widest = cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
                let numbers = !self.rows.is_empty() && cells(column).all(|cell| is_number(cell));
                (widest.max(self.head[column].len()), numbers)
            })
            .collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<String> = cells
                .zip(&columns)
                .map(|(cell, &(width, number))| if number { format!("{cell:>width$}") } else { format!("{cell:<width$}") })
                .collect();
            writeln!(f, "{}", cells.join("  ").trim_end())
        };
        line(&mut self.head.iter().copied())?;
        self.rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
    }
}

/// Whether this is a number, perhaps with a unit, or nothing; addresses are none.
fn is_number(cell: &str) -> bool {
    let digit = cell.starts_with(|first: char| first.is_ascii_digit());
    cell == "-" || (digit && !cell.contains(['/', ':']) && cell.matches('.').count() < 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::new(&["NAME", "N", "TO"]);
        table.row(["ds/ds1-1".into(), "7".into(), String::new()]);
        table.row(["x".into(), "120".into(), "10.0.0.1:5".into()]);
        assert_eq!(table.to_string(), "NAME        N  TO\nds/ds1-1    7  -\nx         120  10.0.0.1:5\n");
        assert_eq!(Table::new(&["A", "B"]).to_string(), "A  B\n");
    }
}
