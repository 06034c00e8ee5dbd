// Lays a graph out in layers, from what is read to what reads it. Pure: no elements here.

export const NODE = { width: 208, height: 40 };
const GAP = { x: 72, y: 14 };
const BENT = 10;
const SWEEPS = 10;

/** layout({nodes: [{key}], edges: [{from, to}]}) gives {boxes: Map, lines, width, height}. */
export function layout({ nodes, edges }) {
  const known = new Set(nodes.map((node) => node.key));
  const ways = edges.filter(({ from, to }) => known.has(from) && known.has(to) && from !== to);
  const depth = findDepths(nodes, ways);
  const { layers, links, paths } = bend(nodes, ways, depth);
  order(layers, links);
  const places = place(layers, links);
  const boxes = new Map(nodes.map((node) => [node.key, places.get(node.key)]));
  const lines = paths.map(({ edge, keys }) => ({ edge, points: points(keys, places) }));
  const all = [...places.values()];
  return {
    boxes,
    lines,
    width: Math.max(...all.map((box) => box.x + NODE.width), NODE.width),
    height: Math.max(...all.map((box) => box.y + box.height), NODE.height),
  };
}

/** The layer of each node: one behind the last of what it reads. Circles are cut where they close. */
function findDepths(nodes, edges) {
  const reads = group(edges, "to", "from");
  const depth = new Map();
  const open = new Set();
  for (const node of nodes) visit(node.key);

  function visit(first) {
    const stack = [[first, 0]];
    while (stack.length) {
      const [key, next] = stack.at(-1);
      const sources = reads.get(key) ?? [];
      open.add(key);
      if (depth.has(key) || next >= sources.length) {
        if (!depth.has(key)) {
          depth.set(key, Math.max(-1, ...sources.map((each) => depth.get(each) ?? -1)) + 1);
        }
        open.delete(key);
        stack.pop();
      } else {
        stack.at(-1)[1] += 1;
        const source = sources[next];
        if (!depth.has(source) && !open.has(source)) stack.push([source, 0]);
      }
    }
  }
  return tighten(nodes, edges, depth);
}

/** Move what reads nothing to just before its first reader, so that lines are short. */
function tighten(nodes, edges, depth) {
  const readers = group(edges, "from", "to");
  const reads = group(edges, "to", "from");
  for (const { key } of nodes) {
    if (reads.has(key) || !readers.has(key)) continue;
    const nearest = Math.min(...readers.get(key).map((each) => depth.get(each)));
    depth.set(key, Math.max(nearest - 1, 0));
  }
  return depth;
}

function group(edges, by, what) {
  const found = new Map();
  for (const edge of edges) {
    if (!found.has(edge[by])) found.set(edge[by], []);
    found.get(edge[by]).push(edge[what]);
  }
  return found;
}

/** Layers with a bend for each layer that a long line passes. */
function bend(nodes, edges, depth) {
  const layers = [];
  const put = (key, layer, height) => {
    layers[layer] ??= [];
    layers[layer].push({ key, height });
  };
  for (const node of nodes) put(node.key, depth.get(node.key), NODE.height);
  const links = [];
  const paths = edges.map((edge, index) => {
    const keys = [edge.from];
    const [from, to] = [depth.get(edge.from), depth.get(edge.to)];
    for (let layer = from + 1; layer < to; layer += 1) {
      const key = `bend ${index} ${layer}`;
      put(key, layer, BENT);
      keys.push(key);
    }
    keys.push(edge.to);
    for (let each = 1; each < keys.length; each += 1) links.push({ from: keys[each - 1], to: keys[each] });
    return { edge, keys };
  });
  for (let layer = 0; layer < layers.length; layer += 1) layers[layer] ??= [];
  return { layers, links, paths };
}

/** Order each layer by the middle of its neighbours, forth and back, so that few lines cross. */
function order(layers, links) {
  const before = group(links, "to", "from");
  const after = group(links, "from", "to");
  const rank = new Map();
  const note = (layer) => layer.forEach((each, index) => rank.set(each.key, index));
  layers.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    const near = forth ? before : after;
    for (const layer of forth ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map((each) => [each.key, mean((near.get(each.key) ?? []).map((key) => rank.get(key)), rank.get(each.key))]));
      layer.sort((a, b) => middle.get(a.key) - middle.get(b.key));
      note(layer);
    }
  }
}

function mean(values, otherwise) {
  return values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : otherwise;
}

/** Put each near the middle of its neighbours without overlapping those of its layer. */
function place(layers, links) {
  const before = group(links, "to", "from");
  const after = group(links, "from", "to");
  const places = new Map();
  layers.forEach((layer, index) => {
    let y = 0;
    for (const each of layer) {
      places.set(each.key, { x: index * (NODE.width + GAP.x), y, height: each.height });
      y += each.height + GAP.y;
    }
  });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) {
      const near = forth ? before : after;
      const wanted = layer.map((each) => {
        const box = places.get(each.key);
        const around = (near.get(each.key) ?? []).map((key) => places.get(key).y + places.get(key).height / 2);
        return mean(around, box.y + box.height / 2) - box.height / 2;
      });
      settle(layer, wanted, places);
    }
  }
  const top = Math.min(...[...places.values()].map((box) => box.y));
  for (const box of places.values()) box.y -= top;
  return places;
}

/** Keep the order and the gaps; a block of neighbours stands around the middle of its wishes. */
function settle(layer, wanted, places) {
  const blocks = [];
  layer.forEach((each, index) => {
    blocks.push({ first: index, last: index, size: each.height, sum: wanted[index], count: 1 });
    for (;;) {
      const [above, below] = blocks.slice(-2);
      if (!below || top(above) + above.size + GAP.y <= top(below)) break;
      // A wish of the lower block, told for the place where the upper one begins.
      const sum = above.sum + below.sum - below.count * (above.size + GAP.y);
      const size = above.size + GAP.y + below.size;
      blocks.splice(-2, 2, { first: above.first, last: below.last, size, sum, count: above.count + below.count });
    }
  });
  for (const block of blocks) {
    let y = top(block);
    for (let index = block.first; index <= block.last; index += 1) {
      const box = places.get(layer[index].key);
      box.y = y;
      y += box.height + GAP.y;
    }
  }
}

function top(block) {
  return block.sum / block.count;
}

function points(keys, places) {
  return keys.flatMap((key, index) => {
    const box = places.get(key);
    const y = box.y + box.height / 2;
    const enters = { x: box.x, y };
    const leaves = { x: box.x + NODE.width, y };
    if (index === 0) return [leaves];
    return index === keys.length - 1 ? [enters] : [enters, leaves];
  });
}
