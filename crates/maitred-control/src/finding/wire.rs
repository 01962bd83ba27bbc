//! A picture as JSON, from a worker to its supervisor. Both are of one version, so that numbers stand in the order of the fields.

use maitred_finding::{Delivery, Log, Memory, Picture, Pool, Queue, Route};
use serde_json::{Map, Value, json};

/// The picture as JSON for the supervisor.
pub fn to_json(picture: &Picture) -> Value {
    let routes = picture.routes.iter().map(|(name, own)| {
        let times =
            [own.run, own.waited, own.database, own.inside, own.inside_for, own.computed, own.measured];
        let row =
            json!([own.pool, [own.requests, own.errors], times, [own.statements, own.asking, own.starved]]);
        (name.clone(), row)
    });
    let pools = picture.pools.iter().map(|(name, pool)| {
        let Pool { threads, max_threads, idle, inside, stuck, is_loop, queued, queued_for } = pool;
        (
            name.clone(),
            json!([threads, max_threads, idle, inside, stuck, u64::from(*is_loop), queued, queued_for]),
        )
    });
    let logs = picture.logs.iter().map(|(name, log)| {
        let Log { waiting, settled, dropped } = log;
        (name.clone(), json!([waiting, settled, dropped]))
    });
    let deliveries = picture.deliveries.iter().map(|(id, delivery)| {
        let Delivery { sent, waiting, route } = delivery;
        (id.clone(), json!([route, sent, waiting]))
    });
    json!({
        "at": picture.at,
        "routes": routes.collect::<Map<_, _>>(),
        "pools": pools.collect::<Map<_, _>>(),
        "wanted": picture.wanted,
        "ran": picture.ran,
        "timeouts": picture.timeouts,
        "parallel": picture.parallel,
        "processors": picture.processors,
        "logs": logs.collect::<Map<_, _>>(),
        "spool": [picture.spool.waiting, picture.spool.done],
        "deliveries": deliveries.collect::<Map<_, _>>(),
        "memory": [picture.memory.resident, picture.memory.held],
        "limit": picture.memory.limit,
    })
}

/// Reads the output of [`to_json`]. Missing numbers are zero.
pub fn from_json(value: &Value) -> Picture {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = |name: &str| value[name].as_object().into_iter().flatten();
    let route = |row: &Value| {
        let [requests, errors] = [0, 1].map(|at| number(&row[1][at]));
        let [run, waited, database, inside, inside_for, computed, measured] =
            [0, 1, 2, 3, 4, 5, 6].map(|at| number(&row[2][at]));
        let [statements, asking, starved] = [0, 1, 2].map(|at| number(&row[3][at]));
        let pool = text(&row[0]);
        Route {
            pool,
            requests,
            errors,
            run,
            waited,
            database,
            inside,
            inside_for,
            computed,
            measured,
            statements,
            asking,
            starved,
        }
    };
    let pool = |row: &Value| Pool {
        threads: number(&row[0]),
        max_threads: number(&row[1]),
        idle: number(&row[2]),
        inside: number(&row[3]),
        stuck: number(&row[4]),
        is_loop: number(&row[5]) > 0,
        queued: number(&row[6]),
        queued_for: number(&row[7]),
    };
    let log =
        |row: &Value| Log { waiting: number(&row[0]), settled: number(&row[1]), dropped: number(&row[2]) };
    let delivery =
        |row: &Value| Delivery { route: text(&row[0]), sent: number(&row[1]), waiting: number(&row[2]) };
    let memory = &value["memory"];
    Picture {
        at: number(&value["at"]),
        routes: fields("routes").map(|(name, row)| (name.clone(), route(row))).collect(),
        pools: fields("pools").map(|(name, row)| (name.clone(), pool(row))).collect(),
        wanted: number(&value["wanted"]),
        ran: number(&value["ran"]),
        timeouts: number(&value["timeouts"]),
        parallel: number(&value["parallel"]),
        processors: number(&value["processors"]),
        logs: fields("logs").map(|(name, row)| (name.clone(), log(row))).collect(),
        spool: Queue { waiting: number(&value["spool"][0]), done: number(&value["spool"][1]) },
        deliveries: fields("deliveries").map(|(id, row)| (id.clone(), delivery(row))).collect(),
        memory: Memory {
            resident: number(&memory[0]),
            held: number(&memory[1]),
            limit: value["limit"].as_u64(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_on_the_other_side() {
        let route = Route {
            pool: "default".into(),
            requests: 1,
            errors: 2,
            run: 3,
            waited: 4,
            database: 5,
            inside: 6,
            inside_for: 7,
            computed: 8,
            measured: 9,
            statements: 10,
            asking: 11,
            starved: 12,
        };
        let pool = Pool {
            threads: 1,
            max_threads: 2,
            idle: 3,
            inside: 4,
            stuck: 5,
            is_loop: true,
            queued: 6,
            queued_for: 7,
        };
        let picture = Picture {
            at: 1,
            routes: [("GET /".to_owned(), route)].into(),
            pools: [("default".to_owned(), pool)].into(),
            wanted: 2,
            ran: 3,
            timeouts: 4,
            parallel: 5,
            processors: 6,
            logs: [("access".to_owned(), Log { waiting: 1, settled: 2, dropped: 3 })].into(),
            spool: Queue { waiting: 1, done: 2 },
            deliveries: [("0.1.2@3".to_owned(), Delivery { sent: 1, waiting: 2, route: "GET /".into() })]
                .into(),
            memory: Memory { resident: 1, held: 2, limit: Some(3) },
        };
        let text = to_json(&picture).to_string();
        assert_eq!(from_json(&serde_json::from_str(&text).expect("json")), picture);
        assert_eq!(from_json(&Value::Null), Picture::default());
    }
}
