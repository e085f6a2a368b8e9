#!/usr/bin/env python3
"""Whether settings of the planner that are learned from reward beat the forecast that was learned from attention.

    policy_search.py bandit MODEL --file TEXT --out ROWS.jsonl      six settings, chosen for each window by LinUCB and by Thompson's rule
    policy_search.py search MODEL --file TEXT --out ROWS.jsonl      twelve numbers of the calibration file, by CMA-ES (pip install cma)

MODEL is a file with a calibration that has a forecast beside it. The reward is the divergence (KL) from the full cache in `eval kv`'s p2,
at 20 and 10% of the bytes. Windows that are learned from and windows that judge are disjoint. An evaluation in ROWS is not done again.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import statistics
import subprocess
import tempfile

import numpy

BUDGETS = (0.2, 0.1)
USUAL_COST_OF_DROP = 3.0
AGE, MEAN_ATTENTION = 1, 4  # of the forecast's inputs
UNLIKELY = -12.0
FORMATS = ("k8v4", "k4cv4", "k4cv3", "k3cv3", "k3cv2")
NUMBERS = ("drop", *FORMATS, "weights", "attention", "asked", "asked-odds", "age", "mean")
ARMS = {"as learned": {}, "drops at half the price": {"drop": math.log(0.5)}, "drops at twice the price": {"drop": math.log(2)},
        "no chance of being asked": {"asked": UNLIKELY}, "chance at three times the odds": {"asked": math.log(3)},
        "roots of heads' weights": {"weights": math.log(0.5)}}


def changed(calibration, numbers):
    """The calibration with each of NUMBERS moved; 0 leaves it."""
    new = json.loads(json.dumps(calibration))
    factor = {name: math.exp(numbers.get(name, 0.0)) for name in NUMBERS}
    costs, forecast = new["kv_format_costs"], new["kv_forecast"]
    costs["gone"] = costs.get("gone", USUAL_COST_OF_DROP) * factor["drop"]
    for name in FORMATS:
        costs[name] *= factor[name]
    weights = [weight ** factor["weights"] for weight in new["kv_head_weights"]]
    new["kv_head_weights"] = [weight * len(weights) / sum(weights) for weight in weights]
    forecast["output_weights"] = [weight * factor["attention"] for weight in forecast["output_weights"]]
    forecast["asked_weights"] = [weight * factor["asked-odds"] for weight in forecast["asked_weights"]]
    forecast["asked_biases"] = [bias + numbers.get("asked", 0.0) for bias in forecast["asked_biases"]]
    units = len(forecast["output_weights"])
    for name, place in (("age", AGE), ("mean", MEAN_ATTENTION)):
        for i in range(place * units, (place + 1) * units):
            forecast["input_weights"][i] *= factor[name]
    return new


class Evaluator:
    """Divergences of settings on windows, kept in a file."""

    def __init__(self, args):
        self.args = args
        self.calibration = json.loads(pathlib.Path(args.model + ".kv.json").read_text(encoding="utf-8"))
        self.out = pathlib.Path(args.out)
        self.known = {}
        for line in self.out.read_text(encoding="utf-8").splitlines() if self.out.exists() else []:
            row = json.loads(line)
            self.known[json.dumps([row["numbers"], row["first"], row["windows"]])] = row["rows"]

    def rows(self, numbers, first, windows):
        """[{window, budget, kl, ratio, full_nll}]"""
        numbers = {name: round(value, 6) for name, value in numbers.items() if value}
        key = json.dumps([numbers, first, windows])
        if key not in self.known:
            self.known[key] = self.measure(numbers, first, windows)
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"numbers": numbers, "first": first, "windows": windows, "rows": self.known[key]}) + "\n")
        return self.known[key]

    def measure(self, numbers, first, windows):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            model.symlink_to(pathlib.Path(self.args.model).resolve())
            pathlib.Path(str(model) + ".kv.json").write_text(json.dumps(changed(self.calibration, numbers)), encoding="utf-8")
            subprocess.run([self.args.binary, "eval", "kv", model, "--file", self.args.file, "--report", f"{folder}/report", "--suite", "p2",
                            "--windows-from", str(first), "--windows", str(windows), "--long-windows", "0", "--policies", "ladder-learned",
                            "--budgets", ",".join(map(str, BUDGETS)), "--quiet"], check=True, stdout=subprocess.DEVNULL)
            with open(f"{folder}/report/rows.csv", encoding="utf-8") as file:
                table = list(csv.DictReader(line for line in file if not line.startswith("#")))
        return [{"window": int(row["item"]), "budget": float(row["budget"]), "kl": float(row["kl"]), "full_nll": float(row["full_nll"]),
                 "ratio": math.exp(float(row["nll"]) - float(row["full_nll"]))} for row in table]


def at(rows, budget):
    return {row["window"]: row["kl"] for row in rows if row["budget"] == budget}


def interval(differences, seed=1):
    """Of the mean, 95%, by bootstrap over windows."""
    draw = random.Random(seed)
    means = sorted(statistics.mean(draw.choices(differences, k=len(differences))) for _ in range(4000))
    return means[100], means[3899]


def judge(name, base, rows):
    for budget in BUDGETS:
        before, after = at(base, budget), at(rows, budget)
        low, high = interval([after[window] - before[window] for window in before])
        means = statistics.mean(before.values()), statistics.mean(after.values())
        print(f"{name}, {budget:.0%}: KL {means[0]:.4f} to {means[1]:.4f} ({means[1] / means[0] - 1:+.1%}), difference {low:+.4f} to {high:+.4f}",
              flush=True)


def search(args):
    import cma
    evaluator = Evaluator(args)

    def loss(x):
        rows = evaluator.rows(dict(zip(NUMBERS, x)), args.first, args.windows)
        return statistics.mean(math.log(row["kl"]) for row in rows)

    base = evaluator.rows({}, args.first, args.windows)
    for seed in range(1, args.seeds + 1):
        strategy = cma.CMAEvolutionStrategy([0.0] * len(NUMBERS), 0.3, {"seed": seed, "popsize": 8, "verbose": -9})
        best = (statistics.mean(math.log(row["kl"]) for row in base), [0.0] * len(NUMBERS))
        for _ in range(args.generations):
            tries = [list(map(float, x)) for x in strategy.ask()]
            losses = [loss(x) for x in tries]
            strategy.tell(tries, losses)
            best = min([best, *zip(losses, tries)])
        numbers = dict(zip(NUMBERS, best[1]))
        print(f"seed {seed}, {8 * args.generations} settings: " + ", ".join(f"{name} {value:+.2f}" for name, value in numbers.items()))
        judge(f"seed {seed}, windows that it saw", base, evaluator.rows(numbers, args.first, args.windows))
        judge(f"seed {seed}, others", evaluator.rows({}, args.test_first, args.test_windows),
              evaluator.rows(numbers, args.test_first, args.test_windows))


def choose(rule, seen, context, arms, draw):
    """The arm for a context: LinUCB's bound or Thompson's draw, each arm with a linear model of its own."""
    values = []
    for arm in arms:
        xs = numpy.array([x for x, of_arm, _ in seen if of_arm == arm]).reshape(-1, len(context))
        ys = numpy.array([y for _, of_arm, y in seen if of_arm == arm])
        inverse = numpy.linalg.inv(numpy.eye(len(context)) + xs.T @ xs)
        mean = inverse @ xs.T @ ys
        if rule == "LinUCB":
            values.append(context @ mean + 0.5 * math.sqrt(context @ inverse @ context))
        elif rule == "Thompson":
            values.append(context @ draw.multivariate_normal(mean, 0.25 * inverse))
        else:
            values.append(context @ mean)
    return arms[int(numpy.argmax(values))]


def bandit(args):
    evaluator = Evaluator(args)
    arms = list(ARMS)
    table, loss_of_text = {}, {}
    for first, count in ((args.first, args.windows), (args.test_first, args.test_windows)):
        for arm in arms:
            for row in evaluator.rows(ARMS[arm], first, count):
                table[row["window"], row["budget"], arm] = row["kl"]
                loss_of_text[row["window"]] = row["full_nll"]
    train = range(args.first, args.first + args.windows)
    test = range(args.test_first, args.test_first + args.test_windows)
    spread = statistics.stdev(loss_of_text[window] for window in train)
    center = statistics.mean(loss_of_text[window] for window in train)

    def context(window):  # what is known of a request before its answer: how well the model predicts its prompt
        return numpy.array([1.0, (loss_of_text[window] - center) / spread])

    for budget in BUDGETS:
        means = {arm: statistics.mean(table[window, budget, arm] for window in train) for arm in arms}
        fixed = min(means, key=means.get)
        of_arms = {arm: statistics.mean(table[window, budget, arm] for window in test) for arm in arms}
        print(f"{budget:.0%}, windows that judge: " + ", ".join(f"{arm} {kl:.4f}" for arm, kl in of_arms.items()))
        hindsight = statistics.mean(min(table[window, budget, arm] for arm in arms) for window in test)
        print(f"{budget:.0%}: the arm that is best on windows learned from ({fixed}) {of_arms[fixed]:.4f}, the best of each window in "
              f"hindsight {hindsight:.4f}")
        for rule in ("LinUCB", "Thompson"):
            results = []
            for seed in range(1, args.seeds + 1):
                draw, seen = numpy.random.default_rng(seed), []
                for window in draw.permutation(list(train)).tolist() * 4:
                    arm = choose(rule, seen, context(window), arms, draw)
                    seen.append((context(window), arm, -math.log(table[window, budget, arm])))
                chosen = [choose("mean", seen, context(window), arms, draw) for window in test]
                results.append(statistics.mean(table[window, budget, arm] for window, arm in zip(test, chosen)))
            print(f"{budget:.0%}: {rule} {statistics.mean(results):.4f}, of {args.seeds} seeds {min(results):.4f} to {max(results):.4f}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("bandit", "search"))
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--binary", default="build/release/bin/kvasir")
    parser.add_argument("--first", type=int, default=8, help="first window that is learned from")
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--test-first", type=int, default=0)
    parser.add_argument("--test-windows", type=int, default=4)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    (bandit if args.what == "bandit" else search)(args)


if __name__ == "__main__":
    main()
