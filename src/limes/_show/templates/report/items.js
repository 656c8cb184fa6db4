/* The text, image or series that is explained, in the colours of its contributions, or coefficients. */

const FAINTEST = 0.04; // smaller shares of the largest coefficient are not coloured

function itemView(model, i, k) {
  return (model.item?.drawings ?? []).map(({ part, text, photo, tints, lanes }) => [
    part ? el('h4', { class: 'part' }, part) : null,
    text.length ? textView(model, i, k, text) : null,
    photo.url ? imageView(photo, tints[k]) : null,
    ...lanes[k].map(laneView),
    lanes[k].length ? el('p', { class: 'soft' }, `Full colour: ±${lanes[k][0].largest}.`) : null,
  ]);
}

function textView(model, i, k, pieces) {
  const values = model.account ? model.features.map((_, j) => model.share(i, j, k).value) : model.drawn(i, k);
  const largest = values.filter(Number.isFinite).reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  return el('p', { class: 'text', dir: 'auto' }, pieces.map(([text, j]) => {
    const share = j < 0 ? 0 : values[j] / largest;
    if (!(Math.abs(share) >= FAINTEST)) return text;
    const word = el('mark', { class: share > 0 ? 'raises' : 'lowers', title: difference(values[j]) }, text);
    word.style.setProperty('--at', `${Math.round(100 * Math.abs(share))}%`);
    return word;
  }));
}

function imageView(photo, tint) {
  const place = (mark) => {
    const label = el('b', {}, String(mark.number));
    label.style.left = `${mark.x}%`;
    label.style.top = `${mark.y}%`;
    return label;
  };
  const shapes = tint.shapes.filter((shape) => photo.outlines[shape.number]).map((shape) => svg(
    'path',
    { class: shape.sign === 'p' ? 'raises' : 'lowers', d: photo.outlines[shape.number], 'fill-opacity': shape.opacity },
    svg('title', {}, `superpixel ${shape.number}: ${shape.coefficient}`),
  ));
  return [
    el(
      'div',
      { class: 'images' },
      el('img', { src: photo.url, alt: 'the image that is explained' }),
      el(
        'div',
        { class: 'tinted' },
        el('img', { class: 'grey', src: photo.url, alt: '' }),
        svg(
          'svg',
          { viewBox: photo.box, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'its superpixels in the colours of their numbers' },
          svg('g', { transform: photo.place }, shapes),
          photo.outside ? svg('path', { class: 'outside', d: photo.outside }) : null,
        ),
        tint.marks.map(place),
      ),
    ),
    el('p', { class: 'soft' }, `Full colour: ±${tint.largest}. Numbers are those of the superpixels with the largest ones.`),
  ];
}

function laneView(lane) {
  const stretches = lane.stretches.map((stretch) => svg(
    'rect',
    { class: stretch.sign === 'p' ? 'raises' : 'lowers', x: stretch.x, width: stretch.width, y: 0, height: 100, opacity: stretch.opacity },
    svg('title', {}, stretch.coefficient),
  ));
  const along = (ticks, side) => ticks.map(({ at, text }) => {
    const label = el('span', {}, text);
    label.style.setProperty(side, `${at}%`);
    return label;
  });
  return [
    lane.name ? el('h4', {}, lane.name) : null,
    el(
      'div',
      { class: 'lane' },
      el('div', { class: 'up' }, along(lane.up, 'top')),
      svg(
        'svg',
        { class: 'series', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'the series, its segments in the colours of their numbers' },
        stretches,
        svg('path', { d: lane.path }),
      ),
      el('div', { class: 'across' }, along(lane.across, 'left')),
      lane.axis ? el('p', {}, lane.axis) : null,
    ),
  ];
}
