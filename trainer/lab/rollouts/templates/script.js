"use strict";
(() => {
  const all = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("groups");
  const more = document.getElementById("more");
  const PAGE = 10;
  let shown = PAGE;
  document.getElementById("choose").open = matchMedia("(min-width: 641px)").matches;  // on a phone they fill the screen

  // Everything that a policy wrote becomes a text node, never markup.
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined && text !== null) made.textContent = text;
    return made;
  };
  const number = name => form.elements[name].value === "" ? null : Number(form.elements[name].value);
  const within = (value, least, most) =>
    (least === null || (value !== null && value >= least)) && (most === null || (value !== null && value <= most));
  const textOf = rollout => rollout.pieces ? rollout.pieces.join("") : rollout.text;
  const valuesOf = rollout => Array.isArray(rollout.weighed) ? rollout.weighed : [rollout.weighed];
  const sizes = all.flatMap(g => g.rollouts.flatMap(valuesOf)).map(Math.abs).sort((a, b) => a - b);
  const largest = sizes[Math.floor(0.98 * (sizes.length - 1))] || sizes[sizes.length - 1] || 1;

  // After figure 5 of arXiv 2505.12929: its classes, words of our own.
  const CLASSES = {
    analysis: "analyze analyzing analysis check checking consider considering examine examining evaluate test try",
    statement: "statement statements say says said saying claim claims claimed tell tells told",
    causal: "because since due cause causes as reason therefore hence thus so",
    conclusion: "conclude concludes conclusion conclusions finally overall summary result results answer",
    assumption: "assume assumes assuming assumption suppose supposing if hypothesis imagine let",
    assertion: "must cannot certainly clearly definitely always never obviously indeed true false",
  };

  function words(rollouts) {
    const counted = rollouts.map(rollout => [rollout.verdict, textOf(rollout).toLowerCase().match(/[a-z]+/g) || []]);
    const rows = Object.entries(CLASSES).map(([name, listed]) => {
      const known = new Set(listed.split(" "));
      const mean = verdict => {
        const counts = counted.filter(([is]) => is === verdict).map(([, said]) => said.filter(word => known.has(word)).length);
        return counts.length ? (counts.reduce((sum, each) => sum + each, 0) / counts.length).toPrecision(3) : "–";
      };
      return [name, mean("right"), mean("wrong"), listed];
    });
    const table = element("table");
    for (const [place, cells] of [["class", "right", "wrong", "its words"], ...rows].entries()) {
      const row = element("tr");
      row.append(...cells.map(text => element(place ? "td" : "th", "", text)));
      table.append(row);
    }
    return table;
  }

  const untrained = all.some(g => g.rollouts.some(r => r.counted)) ? "gray, slanted: not trained, as what a tool wrote" : "";

  function filters() {
    const verdict = form.elements.verdict.value, contains = form.elements.contains.value;
    const [first, last, group] = ["first_step", "last_step", "group"].map(number);
    const [leastReward, mostReward] = ["least_reward", "most_reward"].map(number);
    const [leastLength, mostLength] = ["least_length", "most_length"].map(number);
    return {
      group: g => within(g.step, first, last) && (group === null || g.group === group),
      rollout: r => (!verdict || r.verdict === verdict) && within(r.reward, leastReward, mostReward)
        && within(r.length, leastLength, mostLength) && (!contains || textOf(r).includes(contains)),
    };
  }

  function color(rollout, place, kind) {
    if (kind === "weighed") {
      const value = Array.isArray(rollout.weighed) ? rollout.weighed[place] : rollout.weighed;
      const strength = Math.min(1, Math.abs(value) / largest) * 0.6;
      return value ? `rgba(${value > 0 ? "0, 114, 178" : "213, 94, 0"}, ${strength.toFixed(3)})` : "";
    }
    const probability = rollout.probs[place];
    const strength = Math.min(1, -Math.log(Math.max(probability, 1e-6)) / 4) * 0.6;
    return strength > 0.005 ? `rgba(150, 60, 170, ${strength.toFixed(3)})` : "";
  }

  function completion(rollout, kind) {
    const box = element("pre");
    if (!rollout.pieces || (kind === "probs" && !rollout.probs) || !(kind || rollout.counted)) {
      box.textContent = textOf(rollout);
    } else {
      rollout.pieces.forEach((piece, place) => {
        const token = element("span", "", piece);
        if (rollout.counted && !rollout.counted[place]) {
          token.className = "uncounted";
          token.title = `token ${place + 1}: not trained`;
        } else if (kind) {
          token.style.backgroundColor = color(rollout, place, kind);
          const value = kind === "probs" ? rollout.probs[place]
            : Array.isArray(rollout.weighed) ? rollout.weighed[place] : rollout.weighed;
          token.title = `token ${place + 1}: ${value}`;
        }
        box.append(token);
      });
    }
    if (rollout.left_out) box.append(element("em", "soft", ` … ${rollout.left_out} tokens more`));
    return box;
  }

  function card(rollout, matches, kind) {
    const box = element("article", matches ? "card" : "card other");
    const head = element("header");
    head.append(element("span", `badge ${rollout.verdict}`, rollout.verdict));
    const rewards = Object.entries(rollout.rewards);
    const parts = rewards.length > 1 ? ` (${rewards.map(([name, value]) => `${name} ${value}`).join(", ")})` : "";
    head.append(element("span", "soft", `reward ${rollout.reward}${parts}`));
    box.append(head, completion(rollout, kind));
    const cut = rollout.truncated ? ", cut off" : "";
    box.append(element("p", "soft", `advantage ${rollout.advantage}, ${rollout.length} tokens${cut}`));
    for (const [name, answer, reason] of rollout.said) {
      const text = answer ? `${name}: ${answer} (${reason || "no reason"})` : `${name}: ${reason}`;
      box.append(element("p", "", text));
    }
    if (rollout.others) box.append(element("p", "soft", rollout.others));
    return box;
  }

  function section(group, matching, kind, alone) {
    const box = element("section", "group");
    box.append(element("h3", "", `step ${group.step}, group ${group.group}`));
    box.append(element("pre", "", group.prompt));
    if (group.reference) box.append(element("p", "soft", `reference: ${group.reference}`));
    const cards = element("div", "cards");
    for (const rollout of group.rollouts) {
      const matches = matching.has(rollout);
      if (matches || !alone) cards.append(card(rollout, matches, kind));
    }
    box.append(cards);
    return box;
  }

  function draw() {
    const wanted = filters(), kind = form.elements.color.value, alone = form.elements.shown.value === "alone";
    const found = all.filter(wanted.group)
      .map(group => [group, new Set(group.rollouts.filter(wanted.rollout))]).filter(([, matching]) => matching.size);
    const matches = found.reduce((sum, [, matching]) => sum + matching.size, 0);
    document.getElementById("count").textContent =
      `${matches} rollouts of ${found.length} groups; shown: ${Math.min(shown, found.length)} groups`;
    const colors = {
      weighed: `blue: made more probable, orange: less; the full color is ±${largest.toPrecision(3)} or beyond`,
      probs: "purple: the old policy's probability of the token, the full color is e⁻⁴ = 0.018 or less", "": "",
    }[kind];
    document.getElementById("legend").textContent = [colors, untrained].filter(Boolean).join("; ");
    list.replaceChildren(...found.slice(0, shown).map(([group, matching]) => section(group, matching, kind, alone)));
    more.hidden = found.length <= shown;
    document.getElementById("words").replaceChildren(words(found.flatMap(([, matching]) => [...matching])));
  }

  const again = () => { shown = PAGE; draw(); };
  form.addEventListener("input", again);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(again));
  more.addEventListener("click", () => { shown += PAGE; draw(); });
  draw();
})();
