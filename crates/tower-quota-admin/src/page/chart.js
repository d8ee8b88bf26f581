// Charts of requests a second: what was admitted from the ground up, what was refused on top of it.

const SECONDS = 300;

/** The last five minutes of one limit. Totals may begin again at zero: each policy counts for itself. */
class History {
  constructor() {
    this.points = []; // [time in ms, admitted a second, refused a second]
    this.before = null;
  }

  /** Adds totals that were read at a time. */
  add(now, admitted, refused) {
    const before = this.before;
    this.before = { now, admitted, refused };
    if (before && now > before.now) {
      const seconds = (now - before.now) / 1000;
      const restarted = admitted < before.admitted || refused < before.refused;
      const since = (total, earlier) => (restarted ? total : total - earlier) / seconds;
      this.points.push([now, since(admitted, before.admitted), since(refused, before.refused)]);
    }
    while (this.points.length && this.points[0][0] < now - SECONDS * 1000) this.points.shift();
  }

  /** Returns the means of the last seconds. */
  latest() {
    const last = this.points.slice(-3);
    const mean = column => last.reduce((sum, point) => sum + point[column], 0) / (last.length || 1);
    return { admitted: mean(1), refused: mean(2) };
  }
}

/** Returns a round number that is not lower. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map(step => step * power).find(round => round >= value);
}

/** Draws a history up to now. */
function draw(canvas, points, now) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const style = getComputedStyle(canvas);
  const color = name => style.getPropertyValue(`--${name}`);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const [top, bottom] = [14, height - 15];
  const most = roundUp(points.reduce((most, point) => Math.max(most, point[1] + point[2]), 0));
  const x = time => width - ((now - time) / (SECONDS * 1000)) * width;
  const y = value => bottom - (value / most) * (bottom - top);

  pen.lineWidth = 1;
  pen.strokeStyle = color("line");
  for (const value of [0, most / 2, most]) {
    pen.beginPath();
    pen.moveTo(0, Math.round(y(value)) + 0.5);
    pen.lineTo(width, Math.round(y(value)) + 0.5);
    pen.stroke();
  }
  band(pen, points, x, () => bottom, point => y(point[1]), color("admitted"));
  band(pen, points, x, point => y(point[1]), point => y(point[1] + point[2]), color("refused"));

  pen.fillStyle = color("soft");
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.fillText(`${counts.format(most)}/s`, 0, top - 3);
  pen.fillText("5 min ago", 0, height - 2);
  pen.textAlign = "right";
  pen.fillText("now", width, height - 2);
}

/** Fills what is between two lines, and strokes the upper one where it is above the lower. */
function band(pen, points, x, low, high, color) {
  if (points.length < 2) return;
  pen.beginPath();
  for (const point of points) pen.lineTo(x(point[0]), high(point));
  for (const point of points.toReversed()) pen.lineTo(x(point[0]), low(point));
  pen.closePath();
  pen.globalAlpha = 0.55;
  pen.fillStyle = color;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.beginPath();
  let drawing = false;
  for (const point of points) {
    const visible = low(point) - high(point) > 0.2;
    if (visible && drawing) pen.lineTo(x(point[0]), high(point));
    else if (visible) pen.moveTo(x(point[0]), high(point));
    drawing = visible;
  }
  pen.stroke();
}
