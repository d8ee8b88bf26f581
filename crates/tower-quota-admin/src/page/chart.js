// Charts of requests per second, a bar for five seconds: what was admitted, and on top what was refused.

const SPAN_MS = 300_000;
const BAR_MS = 5000;
// A process that was stopped, or a page without a connection, leaves a gap.
const LONGEST_SECOND_MS = 3000;

/** Returns the bars of a limit. */
function barsOf(limit, seconds) {
  const bars = new Map();
  for (const { at_ms: to, lasts_ms: lasts, limits } of seconds) {
    if (lasts > LONGEST_SECOND_MS) continue;
    const slot = Math.floor(to / BAR_MS);
    const bar = bars.get(slot) ?? { from: to - lasts, lasts: 0, admitted: 0, refused: 0 };
    const [admitted, , refused] = limits[limit] ?? [0, 0, 0];
    bars.set(slot, { ...bar, to, lasts: bar.lasts + lasts, admitted: bar.admitted + admitted, refused: bar.refused + refused });
  }
  return [...bars.values()].map(bar => ({
    ...bar, admitted: (1000 * bar.admitted) / bar.lasts, refused: (1000 * bar.refused) / bar.lasts,
  }));
}

/** Returns a round number that is not lower. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map(step => step * power).find(round => round >= value);
}

/** Draws bars up to an instant with a name. */
function draw(canvas, bars, end, endName) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const style = getComputedStyle(canvas);
  const color = name => style.getPropertyValue(`--${name}`);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const [top, bottom] = [14, height - 15];
  const most = roundUp(Math.max(0, ...bars.map(bar => bar.admitted + bar.refused)));
  const x = time => Math.max(0, Math.round(width - ((end - time) / SPAN_MS) * width));
  const y = value => bottom - (value / most) * (bottom - top);

  pen.fillStyle = color("line");
  for (const value of [0, most / 2, most]) pen.fillRect(0, Math.round(y(value)), width, 1);
  for (const { from, to, admitted, refused } of bars) {
    const [left, right] = [x(from), Math.max(x(to), x(from) + 1)];
    for (const [name, low, high] of [["admitted", 0, admitted], ["refused", admitted, admitted + refused]]) {
      pen.fillStyle = color(name);
      // A little is seen beside much.
      if (high > low) pen.fillRect(left, Math.min(y(high), y(low) - 1), right - left, Math.max(y(low) - y(high), 1));
    }
  }
  pen.fillStyle = color("soft");
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(`${number(most)}/s`, 0, top - 3);
  pen.fillText("5 min before", 0, height - 2);
  pen.textAlign = "right";
  pen.fillText(endName, width, height - 2);
}
