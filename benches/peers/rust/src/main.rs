//! The rows for candle and burn: `peers candle|burn` prints {"version": .., "rows": .., "losses": ..}.

mod burn_rows;
mod candle;
mod data;

/// What was measured, as JSON.
#[derive(Default)]
pub struct Found {
    rows: Vec<String>,
    losses: Vec<String>,
}

impl Found {
    pub fn row(&mut self, name: &str, seconds: f64) {
        self.rows.push(format!("\"{name}\": {seconds:e}"));
    }
    pub fn loss(&mut self, name: &str, value: f64) {
        self.losses.push(format!("\"{name}\": {value}"));
    }
    fn print(&self, version: &str) {
        let (rows, losses) = (self.rows.join(", "), self.losses.join(", "));
        println!("{{\"version\": \"{version}\", \"rows\": {{{rows}}}, \"losses\": {{{losses}}}}}");
    }
}

fn main() {
    let mut found = Found::default();
    match std::env::args().nth(1).as_deref() {
        Some("candle") => {
            let all = candle::ops(&mut found).and_then(|()| candle::model(&mut found, false));
            all.and_then(|()| candle::model(&mut found, true)).expect("candle computes");
            found.print("candle 0.11.1");
        }
        Some("burn") => {
            burn_rows::ops(&mut found);
            burn_rows::model(&mut found, false);
            burn_rows::model(&mut found, true);
            found.print("burn 0.22.1 (Flex)");
        }
        _ => panic!("usage: peers candle|burn"),
    }
}
